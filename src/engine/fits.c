/* SPDX-License-Identifier: Apache-2.0
 * fits.c: does it all fit into the memory of a device that has its own? Said before anything goes
 * there, in figures. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/internal.h"

uint64_t fits_weights(const struct engine *e, const struct part *p, uint32_t from, uint32_t to) {
    bool whole = from == 0 && to == e->model->graph.nodes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->model->weights; i++) {
        const struct weight *w = e->model->weight[i];
        if (whole || memory_uses(e, from, to, w)) bytes += p->type->weight_memory(p->device, w);
    }
    return bytes;
}

uint64_t fits_steps(const struct engine *e, const struct part *p, const uint64_t *group_bytes) {
    const struct device_kv kv = {.type = e->kv_type, .page_bytes = p->page_bytes};
    return p->type->plan_memory(p->device, p->graph, &kv, group_bytes, e->step_tokens,
                                e->step_logits);
}

static const char *size(uint64_t bytes, char out[24]) {
    const double mib = (double)bytes / (1 << 20);
    if (mib < 1024) snprintf(out, 24, "%.1f MiB", mib);
    else snprintf(out, 24, "%.2f GiB", mib / 1024);
    return out;
}

static ob_status check_part(const struct engine *e, const struct part *p,
                            const uint64_t *group_bytes, ob_error *error) {
    uint64_t available, total, kv = 0;
    for (uint32_t g = 0; g < e->groups; g++) kv += group_bytes[g];
    uint64_t weights = fits_weights(e, p, p->from, p->to), steps = fits_steps(e, p, group_bytes);
    p->type->memory(p->device, &available, &total);
    char a[24], b[24], c[24], d[24], sum[24], name[128], text[400];
    p->type->describe(p->device, name, sizeof name);
    /* Each is less than the whole, so that the sum cannot wrap. */
    bool fits = weights <= available && kv <= available && steps <= available &&
                weights + kv + steps <= available;
    snprintf(text, sizeof text,
             "weights of %s, KV memory of %s for %" PRIu64 " tokens, %s for steps of %u tokens: %s "
             "of the %s that %s has free",
             size(weights, a), size(kv, b), e->capacity, size(steps, c), e->step_tokens,
             size(weights + kv + steps, sum), size(available, d), name);
    if (fits) {
        log_info("%s", text);
        return OB_OK;
    }
    const char *help = weights + steps > available
                           ? "gpu_layers auto leaves some layers on the CPU"
                           : "less kv_memory, context, parallel or step_tokens may fit";
    return error_set(error, OB_ERR_MEMORY, "%s; %s", text, help);
}

ob_status fits_check(const struct engine *e, ob_error *error) {
    ob_status s = OB_OK;
    struct arena arena = ARENA_INIT;
    uint64_t *group_bytes = arena_array(&arena, e->groups + 1, sizeof *group_bytes);
    if (!group_bytes) s = error_memory(error, "KV tables", 0);
    for (uint32_t i = 0; s == OB_OK && i < e->parts; i++) {
        const struct part *p = &e->part[i];
        for (uint32_t g = 0; g < e->groups; g++)
            group_bytes[g] = memory_pages(e, g, e->capacity) * p->page_bytes[g];
        if (p->type->weight_memory) s = check_part(e, p, group_bytes, error);
    }
    arena_free(&arena);
    return s;
}
