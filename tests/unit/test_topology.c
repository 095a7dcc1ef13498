/* SPDX-License-Identifier: Apache-2.0
 * test_topology.c: which processors threads get, on machines that hwloc makes up and this one. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/topology.h"

enum { ANY = -1, MOST = 8 };

struct row {
    const char *machine, *slow, *mask, *numa;
    uint32_t threads, want;
    int cpu[MOST]; /* ANY first: not bound */
};

#define NUMA "numa:2 core:4 pu:2" /* node 0: 0-7, cores (0, 1) ..; node 1: 8-15 */
static const struct row rows[] = {
    {NUMA, NULL, NULL, NULL, 0, 8, {ANY}},
    {NUMA, NULL, NULL, "none", 20, 20, {ANY}}, /* too many are slow, not wrong */
    {NUMA, NULL, NULL, "distribute", 5, 5, {0, 8, 2, 10, 4}},
    {NUMA, NULL, NULL, "isolate", 0, 4, {0, 2, 4, 6}},
    {NUMA, NULL, NULL, "isolate", 6, 6, {0, 2, 4, 6, 1, 3}},
    {NUMA, NULL, "1-3", NULL, 0, 3, {1, 2, 3}}, /* 1: the first of its core that is left */
    {NUMA, NULL, "0x30", NULL, 0, 2, {4, 5}},
    {NUMA, NULL, "15,0", NULL, 1, 1, {0}},
    {NUMA, NULL, "7,9", "isolate", 0, 1, {7}},
    {"core:4 pu:1", "2-3", NULL, NULL, 0, 2, {ANY}},
    {"core:4 pu:1", "0-1", "0-3", NULL, 3, 3, {2, 3, 0}}, /* fast ones first */
    {"core:2 pu:2", "2-3", "0-3", NULL, 4, 4, {0, 2, 1, 3}}, /* a slow core before a sibling */
    {"core:2 pu:1", NULL, "0-1", NULL, 0, 2, {0, 1}},
};

static void processors_by_cores_nodes_and_kinds(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct topology *t;
        struct topology_choice got;
        const struct topology_want want = {r->threads, r->mask, r->numa};
        assert_int_equal(topology_open(r->machine, r->slow, &t, NULL), OB_OK);
        assert_int_equal(topology_choose(t, &want, &got, NULL), OB_OK);
        assert_int_equal(got.threads, r->want);
        if (r->cpu[0] == ANY)
            assert_null(got.cpu);
        else
            for (uint32_t k = 0; k < got.threads; k++) assert_int_equal(got.cpu[k], r->cpu[k]);
        free(got.cpu);
        topology_close(&t);
    }
}

static void what_is_not_there_is_named(void **state) {
    (void)state;
    static const struct {
        struct topology_want want;
        const char *key, *text;
    } bad[] = {
        {{.cpu_mask = "16"}, "cpu_mask", "may use the processors 0-15 only"},
        {{.cpu_mask = "0-99999"}, "cpu_mask", "is no list"},
        {{.cpu_mask = "3-1"}, "cpu_mask", "\"3-1\" is no list"},
        {{.cpu_mask = ""}, "cpu_mask", "is no list"},
        {{.cpu_mask = "1,"}, "cpu_mask", "is no list"},
        {{.cpu_mask = "1x"}, "cpu_mask", "is no list"},
        {{.cpu_mask = "0x"}, "cpu_mask", "is no list"},
        {{.cpu_mask = "0xg"}, "cpu_mask", "is no list"},
        {{.cpu_mask = "0x0"}, "cpu_mask", "may use"},
        {{.cpu_mask = "0x10000"}, "cpu_mask", "may use"},
        {{.cpu_mask = "-1"}, "cpu_mask", "is no list"},
        {{.threads = 4, .cpu_mask = "1-3"}, "threads", "4 threads, but"},
        {{.threads = 9, .numa = "isolate"}, "threads", "leave 8 processors"},
        {{.numa = "all"}, "numa", "\"all\" is none of"},
        {{.cpu_mask = "9", .numa = "isolate"}, NULL, NULL}, /* that node, then */
    };
    struct topology *t;
    assert_int_equal(topology_open(NUMA, NULL, &t, NULL), OB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ob_error error = {0};
        struct topology_choice got;
        ob_status s = topology_choose(t, &bad[i].want, &got, &error);
        free(got.cpu);
        if (!bad[i].key) {
            assert_int_equal(s, OB_OK);
            continue;
        }
        assert_int_equal(s, OB_ERR_ARGUMENT);
        assert_string_equal(error.where, bad[i].key);
        assert_non_null(strstr(error.message, bad[i].text));
        assert_null(got.cpu);
    }
    topology_close(&t);
    assert_int_not_equal(topology_open("nonsense", NULL, &t, NULL), OB_OK);
    assert_null(t);
}

static uint64_t mine(void) {
    cpu_set_t set;
    uint64_t bits = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (int i = 0; i < 64; i++) bits |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i;
    return bits;
}

static void note(void *arg, uint32_t chunk, uint32_t thread) {
    (void)chunk;
    ((uint64_t *)arg)[thread] = mine();
    usleep(1000);
}

static void threads_run_where_they_are_told(void **state) {
    (void)state;
    uint64_t before = mine(), seen[2] = {0};
    struct topology *t;
    struct topology_choice on;
    const struct topology_want want = {.threads = 1, .numa = "isolate"};
    assert_int_equal(topology_open(NULL, NULL, &t, NULL), OB_OK);
    assert_int_equal(topology_choose(t, &want, &on, NULL), OB_OK);
    topology_close(&t);
    assert_true(before >> on.cpu[0] & 1);
    const uint32_t both[2] = {on.cpu[0], on.cpu[0]};
    struct pool *pool = pool_new(2, both);
    for (int i = 0; i < 100 && !seen[1]; i++) pool_run(pool, 16, note, seen);
    assert_true(seen[0] == 1ull << on.cpu[0] && seen[1] == seen[0]);
    pool_free(&pool);
    assert_true(mine() == before);
    uint64_t others = before & ~(1ull << on.cpu[0]);
    if (others) { /* each on its own */
        const uint32_t two[2] = {on.cpu[0], (uint32_t)__builtin_ctzll(others)};
        pool = pool_new(2, two);
        seen[1] = 0;
        for (int i = 0; i < 100 && !seen[1]; i++) pool_run(pool, 16, note, seen);
        assert_true(seen[0] == 1ull << two[0] && (!seen[1] || seen[1] == 1ull << two[1]));
        pool_free(&pool);
        assert_true(mine() == before);
    }
    free(on.cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_by_cores_nodes_and_kinds),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(threads_run_where_they_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
