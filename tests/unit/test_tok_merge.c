/* SPDX-License-Identifier: Apache-2.0
 * test_tok_merge.c: merging against its definition written out (look at all pairs, join the best,
 * again) on random rules: equal ranks, and joins that make an earlier rank possible, among them;
 * words short (a heap) and long (buckets, and rules remembered). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/rng.h"
#include "text/tok_merge.h"

enum { LONGEST = 1200, LETTERS = 3, WORD = 7 };

/* Rules by hash: a symbol of more than WORD cells is not made; ids tell the number of cells. */
struct rules {
    uint64_t seed;
    uint32_t ranks, odds; /* one pair in `odds` joins */
};

static bool rule(const struct rules *r, int32_t left, int32_t right, struct merge_rule *out) {
    if (left < 0 || right < 0) return false;
    uint64_t h = rng_u64(r->seed, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
    uint32_t cells = (uint32_t)left % 16 + (uint32_t)right % 16;
    if (cells > WORD || h % r->odds != 0) return false;
    out->rank = (uint32_t)(h >> 32) % r->ranks;
    out->id = (int32_t)((h >> 40 & 63) * 16 + cells);
    return true;
}

static bool find(const void *ctx, const struct merge *m, uint32_t left, uint32_t right,
                 struct merge_rule *out) {
    assert_int_equal(m->at[left + m->cell[left].span], m->at[right]);
    return rule(ctx, m->cell[left].id, m->cell[right].id, out);
}

/* Joins in place; the number of symbols left. */
static size_t by_definition(const struct rules *r, int32_t *id, size_t n) {
    for (;;) {
        struct merge_rule best = {MERGE_NONE, -1}, one;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            if (rule(r, id[i], id[i + 1], &one) && one.rank < best.rank) best = one, at = i;
        if (best.rank == MERGE_NONE) return n;
        id[at] = best.id;
        n--;
        for (size_t i = at + 1; i < n; i++) id[i] = id[i + 1];
    }
}

static void one_word(struct merge *m, const struct rules *r, size_t n, uint64_t seed) {
    static int32_t want[LONGEST];
    m->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t h = rng_u64(seed, i);
        want[i] = h % 50 == 0 ? -1 : (int32_t)(h % LETTERS * 16 + 1);
        assert_true(merge_push(m, want[i], 2 * i, 2));
    }
    size_t left = by_definition(r, want, n), k = 0;
    assert_true(merge_run(m, r->ranks, find, r));
    for (size_t i = 0; i < n; i += m->cell[i].span, k++) {
        assert_true(k < left);
        assert_int_equal(m->cell[i].id, want[k]);
        assert_int_equal(m->at[i], 2 * i);
    }
    assert_int_equal(k, left);
}

static void merging_is_its_definition(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 9, 100, 511, 512, 513, LONGEST};
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct merge merge = {0};
        struct rules rules = {seed, seed % 3 == 0 ? 4 : seed % 3 == 1 ? 70 : 5000,
                              seed % 2 ? 1 : 3};
        for (size_t round = 0; round < 2; round++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                one_word(&merge, &rules, sizes[s], seed * 100 + s + round * 50);
        merge_free(&merge);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(merging_is_its_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
