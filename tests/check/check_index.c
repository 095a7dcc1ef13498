/* SPDX-License-Identifier: Apache-2.0
 * check_index.c: scores by which a token chooses what it attends to, and the choice. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"

struct index_case {
    enum cpu_isa isa;
    enum kv_type kv;
    uint32_t heads, dim, pages;
    bool bare; /* no weights */
};

static const void **make_pages(struct check_row *row, const struct index_case *c) {
    const void **block = check_scratch(row, c->pages * sizeof *block);
    const struct kv_types kv = {c->kv, c->kv};
    for (uint32_t p = 0; p < c->pages; p++) {
        const float *k = check_input(row, ATTENTION_PAGE * c->dim, -2, 2);
        void *page = check_bytes(row, ATTENTION_PAGE * kv_position_bytes(kv, c->dim, 0));
        struct attention_store store = {.k = k, .v = k, .k_stride = c->dim, .k_dim = c->dim,
                                        .rows = ATTENTION_PAGE, .type = kv, .block = page};
        kernels_table(c->isa)->attention_store(&store);
        block[p] = page;
    }
    return block;
}

static void run_scores(struct check_row *row, const void *arg) {
    const struct index_case *c = arg;
    const struct kernels *ours = kernels_table(c->isa), *other = kernels_table(CPU_SCALAR);
    if (c->isa == CPU_SCALAR) other = kernels_ref();
    uint32_t n = c->pages * ATTENTION_PAGE;
    float *got = check_output(row, n), *want = check_output(row, n);
    struct index_job job = {.heads = c->heads,
                            .dim = c->dim,
                            .type = c->kv,
                            .q = check_input(row, c->heads * c->dim, -2, 2),
                            .weight = c->bare ? NULL : check_input(row, c->heads, -1, 1),
                            .block = make_pages(row, c),
                            .pages = c->pages,
                            .scratch = check_scratch(row, attention_scratch(c->dim)),
                            .score = got};
    const struct kv_types kv = {c->kv, c->kv};
    double bytes = (double)n * (double)kv_position_bytes(kv, c->dim, 0);
    while (check_again(row, bytes, 2.0 * n * c->heads * c->dim)) ours->index_scores(&job);
    job.score = want;
    other->index_scores(&job);
    if (c->isa != CPU_SCALAR) check_equal(row, got, want, n);
    else /* a quantized K takes the query in int8 */
        check_nmse(row, got, want, n, kv_quant(c->kv)->block > 1 ? 3e-4 : 1e-11);
}

static bool above(const float *score, uint32_t a, uint32_t b) {
    if (isnan(score[a]) != isnan(score[b])) return isnan(score[a]);
    return score[a] > score[b] || (!(score[a] < score[b]) && a < b);
}

/* Many equal scores, some odd ones, in pieces of any size. */
static void run_choice(struct check_row *row, const void *arg) {
    const uint32_t n = 700, used = *(const uint32_t *)arg;
    const float odd[] = {INFINITY, -INFINITY, NAN, -0.0f, 0, 1e-40f};
    float *score = check_input(row, n, -3, 3), *out = check_output(row, used);
    for (uint32_t i = 0; i < n; i++)
        score[i] = check_below(row, 9) ? rintf(score[i]) : odd[check_below(row, 6)];
    struct index_top top = {.used = used, .heap = check_scratch(row, used * sizeof(uint64_t))};
    for (uint32_t i = 0, m; i < n; i += m) {
        m = 1 + check_below(row, 99);
        if (m > n - i) m = n - i;
        index_push(&top, score + i, i, m);
    }
    index_list(&top, out);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t better = 0;
        for (uint32_t j = 0; j < n; j++) better += above(score, j, i);
        if (better >= used) continue;
        CHECK_THAT(row, listed < used && out[listed] == (float)i);
        listed++;
    }
    for (; listed < used; listed++) CHECK_THAT(row, out[listed] == INFINITY);
}

void check_index(struct check *check) {
    static const struct index_case cases[] = {{.heads = 1, .dim = 32, .pages = 1},
                                              {.heads = 1, .dim = 64, .pages = 8, .bare = true},
                                              {.heads = 7, .dim = 64, .pages = 3},
                                              {.heads = 64, .dim = 128, .pages = 8},
                                              {.heads = 70, .dim = 32, .pages = 2}};
    CHECK_ISAS(check, isa)
        for (int kv = 0; kv < KV_TYPES; kv++)
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct index_case c = cases[i];
                c.isa = isa;
                c.kv = (enum kv_type)kv;
                check_run(check, run_scores, &c, "index.%s.%s.h%u_d%u_p%u", cpu_isa_name(isa),
                          kv_name(c.kv), c.heads, c.dim, c.pages);
            }
    static const uint32_t used[] = {1, 2, 100, 699, 700, 900};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        check_run(check, run_choice, &used[i], "index.choice.%u", used[i]);
}
