/* SPDX-License-Identifier: Apache-2.0
 * topology.c: see topology.h. */
#include "base/topology.h"

#include <ctype.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"

enum { CPUS_MAX = 4096 };

struct topology {
    hwloc_topology_t hwloc;
    bool here; /* this machine */
};

/* "0-3,8", strictly: hwloc's own reader stops at what it does not know. */
static bool read_list(const char *text, hwloc_bitmap_t set) {
    for (const char *p = text;; p++) {
        unsigned long range[2];
        for (int end = 0; end < 2; end++) {
            char *after;
            if (!isdigit((unsigned char)*p)) return false;
            range[end] = strtoul(p, &after, 10);
            p = after;
            if (end == 0 && *p != '-') {
                range[1] = range[0];
                break;
            }
            if (end == 0) p++;
        }
        if (range[0] > range[1] || range[1] >= CPUS_MAX) return false;
        hwloc_bitmap_set_range(set, (unsigned)range[0], (int)range[1]);
        if (*p == 0) return true;
        if (*p != ',') return false;
    }
}

static bool read_mask(const char *text, hwloc_bitmap_t set) {
    if (strncmp(text, "0x", 2) != 0) return read_list(text, set);
    size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");
    return digits > 0 && digits <= CPUS_MAX / 4 && text[2 + digits] == 0 &&
           hwloc_bitmap_taskset_sscanf(set, text) == 0;
}

static bool load(struct topology *t, const char *description, const char *slow) {
    if (hwloc_topology_init(&t->hwloc) != 0) return false;
    if (description && hwloc_topology_set_synthetic(t->hwloc, description) != 0) return false;
    if (hwloc_topology_load(t->hwloc) != 0) return false;
    if (!slow) return true;
    hwloc_bitmap_t set = hwloc_bitmap_alloc(), fast = hwloc_bitmap_alloc();
    bool ok = set && fast && read_list(slow, set) &&
              hwloc_bitmap_andnot(fast, hwloc_topology_get_topology_cpuset(t->hwloc), set) == 0 &&
              hwloc_cpukinds_register(t->hwloc, set, 0, 0, NULL, 0) == 0 &&
              hwloc_cpukinds_register(t->hwloc, fast, 1, 0, NULL, 0) == 0;
    hwloc_bitmap_free(set);
    hwloc_bitmap_free(fast);
    return ok;
}

ob_status topology_open(const char *description, const char *slow, struct topology **out,
                        ob_error *error) {
    struct topology *t = *out = calloc(1, sizeof *t);
    if (!t) return error_memory(error, "a topology", sizeof *t);
    t->here = !description;
    if (load(t, description, slow)) return OB_OK;
    topology_close(out);
    return error_set(error, OB_ERR_IO, "cannot read which processors this machine has");
}

void topology_close(struct topology **topology) {
    if (!*topology) return;
    if ((*topology)->hwloc) hwloc_topology_destroy((*topology)->hwloc);
    free(*topology);
    *topology = NULL;
}

/* ---- choosing ---- */

/* A processor, by what decides the order in which they are used. */
struct candidate {
    uint32_t cpu;
    uint32_t sibling; /* how many of its core come before it */
    bool slow;
    uint32_t turn;    /* with "distribute" how many of its node come before it */
    uint32_t core;    /* in the machine's order */
};

static int by_use(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->sibling != y->sibling) return x->sibling < y->sibling ? -1 : 1;
    if (x->slow != y->slow) return x->slow ? 1 : -1;
    if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
    if (x->core != y->core) return x->core < y->core ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static bool is_slow(const struct topology *t, const struct hwloc_obj *pu) {
    int kinds = hwloc_cpukinds_get_nr(t->hwloc, 0), most = -1, own = -1, efficiency;
    int kind = hwloc_cpukinds_get_by_cpuset(t->hwloc, pu->cpuset, 0);
    if (kinds < 2 || kind < 0) return false;
    for (int i = 0; i < kinds; i++) {
        if (hwloc_cpukinds_get_info(t->hwloc, (unsigned)i, NULL, &efficiency, NULL, NULL, 0) != 0)
            return false;
        if (efficiency > most) most = efficiency;
        if (i == kind) own = efficiency;
    }
    return own < most;
}

static uint32_t node_of(const struct topology *t, const struct hwloc_obj *pu) {
    struct hwloc_obj *node = NULL;
    while ((node = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isincluded(pu->cpuset, node->cpuset)) return node->logical_index;
    return 0;
}

/* The processors in `set`, in the order of use. */
static uint32_t list(const struct topology *t, hwloc_const_bitmap_t set, bool distribute,
                     struct candidate *out) {
    uint32_t n = 0;
    struct hwloc_obj *pu = NULL;
    while (n < CPUS_MAX && (pu = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PU, pu))) {
        if (!hwloc_bitmap_isset(set, pu->os_index)) continue;
        struct hwloc_obj *core = hwloc_get_ancestor_obj_by_type(t->hwloc, HWLOC_OBJ_CORE, pu);
        struct candidate *c = &out[n];
        *c = (struct candidate){.cpu = pu->os_index, .slow = is_slow(t, pu),
                                .core = core ? core->logical_index : pu->logical_index,
                                .turn = distribute ? node_of(t, pu) : 0};
        for (uint32_t i = 0; i < n; i++) c->sibling += out[i].core == c->core;
        n++;
    }
    /* From the node to the turn in it, among those that come equally early. */
    for (uint32_t i = n; distribute && i-- > 0;) {
        uint32_t turn = 0;
        for (uint32_t j = 0; j < i; j++)
            turn += out[j].turn == out[i].turn && out[j].sibling == out[i].sibling &&
                    out[j].slow == out[i].slow;
        out[i].turn = turn;
    }
    qsort(out, n, sizeof *out, by_use);
    return n;
}

static ob_status refuse(ob_error *error, const char *field, const char *format, const char *text) {
    error_set(error, OB_ERR_ARGUMENT, format, text);
    error_at(error, NULL, field, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* Keeps of `set` the node on which this thread runs; of another machine the first. */
static ob_status isolate(const struct topology *t, hwloc_bitmap_t set, ob_error *error) {
    hwloc_bitmap_t at = hwloc_bitmap_alloc();
    if (!at) return error_memory(error, "a set of processors", 0);
    if (!t->here || hwloc_get_last_cpu_location(t->hwloc, at, HWLOC_CPUBIND_THREAD) != 0)
        hwloc_bitmap_copy(at, set);
    struct hwloc_obj *node = NULL;
    while ((node = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_intersects(node->cpuset, at)) break;
    if (node) hwloc_bitmap_and(set, set, node->cpuset);
    hwloc_bitmap_free(at);
    if (hwloc_bitmap_iszero(set))
        return refuse(error, "numa", "%s: none of the processors of --cpu-mask is on this node",
                      "isolate");
    return OB_OK;
}

static ob_status read_set(const struct topology *t, const struct topology_want *want,
                          hwloc_bitmap_t set, ob_error *error) {
    const char *numa = want->numa ? want->numa : "none";
    hwloc_bitmap_copy(set, hwloc_topology_get_allowed_cpuset(t->hwloc));
    hwloc_bitmap_t some = hwloc_bitmap_alloc();
    if (!some) return error_memory(error, "a set of processors", 0);
    if (t->here && hwloc_get_cpubind(t->hwloc, some, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(set, set, some);
    hwloc_bitmap_zero(some);
    ob_status status = OB_OK;
    char there[256];
    hwloc_bitmap_list_snprintf(there, sizeof there, set);
    if (want->cpu_mask && !read_mask(want->cpu_mask, some))
        status = refuse(error, "cpu_mask", "\"%s\" is no list (0-3,8) or mask (0xff) of processors",
                        want->cpu_mask);
    else if (want->cpu_mask && (hwloc_bitmap_iszero(some) || !hwloc_bitmap_isincluded(some, set)))
        status = refuse(error, "cpu_mask", "this process may use the processors %s only", there);
    else if (want->cpu_mask)
        hwloc_bitmap_copy(set, some);
    hwloc_bitmap_free(some);
    if (status != OB_OK || strcmp(numa, "none") == 0 || strcmp(numa, "distribute") == 0)
        return status;
    if (strcmp(numa, "isolate") == 0) return isolate(t, set, error);
    return refuse(error, "numa", "\"%s\" is none of none, distribute, isolate", numa);
}

static uint32_t default_threads(const struct topology *t, const struct topology_want *want,
                                const struct candidate *c, uint32_t n) {
    uint32_t cores = 0, granted = t->here ? os_cpu_quota() : UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) cores += c[i].sibling == 0 && !c[i].slow;
    if (want->cpu_mask) return n;
    if (cores == 0) cores = n ? n : 1; /* slow ones only, or a system that does not tell */
    return cores < granted ? cores : granted;
}

static ob_status choose(const struct topology *t, const struct topology_want *want,
                        const struct candidate *c, uint32_t n, struct topology_choice *out,
                        ob_error *error) {
    bool pinned = want->cpu_mask || (want->numa && strcmp(want->numa, "none") != 0);
    out->threads = want->threads ? want->threads : default_threads(t, want, c, n);
    if (!pinned) return OB_OK;
    if (out->threads > n) {
        error_set(error, OB_ERR_ARGUMENT,
                  "%u threads, but --cpu-mask and --numa leave %u processor%s", out->threads, n,
                  n == 1 ? "" : "s");
        error_at(error, NULL, "threads", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    out->cpu = malloc(out->threads * sizeof *out->cpu);
    if (!out->cpu) return error_memory(error, "a list of processors", out->threads);
    for (uint32_t i = 0; i < out->threads; i++) out->cpu[i] = c[i].cpu;
    return OB_OK;
}

ob_status topology_choose(const struct topology *t, const struct topology_want *want,
                          struct topology_choice *out, ob_error *error) {
    *out = (struct topology_choice){0};
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    struct candidate *c = calloc(CPUS_MAX, sizeof *c);
    ob_status status = set && c ? read_set(t, want, set, error)
                                : error_memory(error, "a set of processors", 0);
    bool distribute = want->numa && strcmp(want->numa, "distribute") == 0;
    if (status == OB_OK)
        status = choose(t, want, c, list(t, set, distribute, c), out, error);
    free(c);
    if (set) hwloc_bitmap_free(set);
    return status;
}
