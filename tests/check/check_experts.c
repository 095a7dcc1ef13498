/* SPDX-License-Identifier: Apache-2.0
 * check_experts.c: route, which chooses experts, the grouping of tokens by expert, and combine,
 * which adds up what they give. */
#include <math.h>

#include "check.h"
#include "kernels/kernels.h"

/* Inputs: any floats; logits of few values, so that many are equal; some not finite. */
enum kind { PLAIN, TIES, ODD, KINDS };
static const char *const kind_name[KINDS] = {"plain", "ties", "odd"};

static const char *const score_name[ROUTE_SCORES] = {
    "softmax", "chosen", "sigmoid", "sqrt_softplus", "sparsemixer", "identity"};

struct experts_case {
    enum cpu_isa isa;
    enum kind kind;
    enum route_score score;
    uint32_t experts, used, cols;
};

static float *make(struct check_row *row, enum kind kind, size_t n) {
    const float odd[] = {INFINITY, -INFINITY, NAN, 1e38f, -1e38f, 0};
    float *x = check_input(row, n, -6, 6);
    for (size_t i = 0; i < n; i++) {
        if (kind == TIES) x[i] = (float)check_below(row, 3);
        if (kind == ODD && check_below(row, 4) == 0) x[i] = odd[check_below(row, 6)];
    }
    return x;
}

static void route(const struct experts_case *c, const struct kernels *k, const float *x,
                  float *out) {
    k->route(&(struct route_job){.score = c->score,
                                 .experts = c->experts,
                                 .used = c->used,
                                 .scale = 1,
                                 .jitter_eps = 0.01f},
             x, out);
}

/* The chosen are distinct, in descending order, and nobody above the last was left out. */
static void check_choice(struct check_row *row, const struct experts_case *c, const float *x,
                         const float *expert) {
    for (uint32_t i = 1; i < c->used; i++) {
        uint32_t a = (uint32_t)expert[i - 1], b = (uint32_t)expert[i];
        CHECK_THAT(row, x[a] > x[b] || (x[a] == x[b] && a < b));
    }
    uint32_t last = (uint32_t)expert[c->used - 1], above = 0;
    for (uint32_t e = 0; e < c->experts; e++)
        above += x[e] > x[last] || (x[e] == x[last] && e < last);
    CHECK_THAT(row, above == c->used - 1);
}

static void run_route(struct check_row *row, const void *arg) {
    const struct experts_case *c = arg;
    const float *x = make(row, c->kind, c->experts);
    float *got = check_output(row, 2 * c->used), *want = check_output(row, 2 * c->used);
    while (check_again(row, 4.0 * c->experts, 0)) route(c, kernels_table(c->isa), x, got);
    if (c->isa != CPU_SCALAR) {
        route(c, kernels_table(CPU_SCALAR), x, want);
        check_equal(row, got, want, 2 * c->used);
        return;
    }
    route(c, kernels_ref(), x, want);
    check_equal(row, got + c->used, want + c->used, c->used);
    if (c->kind == ODD) return;
    check_close(row, got, want, c->used, (struct check_bound){1e-30, 1e-6});
    check_choice(row, c, x, got + c->used);
}

/* A NaN among the logits is in every weight. */
static void run_nan(struct check_row *row, const void *arg) {
    const struct experts_case *c = arg;
    float *x = make(row, PLAIN, c->experts), *got = check_output(row, 2 * c->used);
    x[check_below(row, c->experts)] = NAN;
    route(c, kernels_table(c->isa), x, got);
    for (uint32_t i = 0; i < c->used; i++) CHECK_THAT(row, isnan(got[i]));
    for (uint32_t i = 0; i < c->used; i++) CHECK_THAT(row, got[c->used + i] < (float)c->experts);
}

/* Every pair once, where pair[] says, and in order. */
static void run_group(struct check_row *row, const void *arg) {
    const struct experts_case *c = arg;
    enum { TOKENS = 50 };
    uint32_t pairs = TOKENS * c->used, seen = 0;
    float *route_of = check_output(row, 2 * pairs);
    for (uint32_t t = 0; t < TOKENS; t++)
        route(c, kernels_ref(), make(row, PLAIN, c->experts), route_of + 2 * c->used * t);
    uint32_t *first = check_scratch(row, (c->experts + 1) * sizeof *first),
             *token = check_scratch(row, pairs * sizeof *token),
             *pair = check_scratch(row, pairs * sizeof *pair);
    experts_group(route_of, TOKENS, c->experts, c->used, first, token, pair);
    CHECK_THAT(row, first[0] == 0 && first[c->experts] == pairs);
    for (uint32_t e = 0; e < c->experts; e++)
        for (uint32_t t = 0; t < TOKENS; t++)
            for (uint32_t i = 0; i < c->used; i++) {
                if (route_of[(2 * t + 1) * c->used + i] != (float)e) continue;
                CHECK_THAT(row, pair[t * c->used + i] == seen && token[seen] == t);
                CHECK_THAT(row, seen >= first[e] && seen < first[e + 1]);
                seen++;
            }
}

static void run_combine(struct check_row *row, const void *arg) {
    const struct experts_case *c = arg;
    enum { ROWS = 9 };
    const float *x = make(row, c->kind == ODD ? ODD : PLAIN, (size_t)ROWS * c->cols);
    const float *weight = check_input(row, c->used, -1, 1);
    uint32_t at[ROUTE_USED_MAX];
    for (uint32_t i = 0; i < c->used; i++) at[i] = check_below(row, ROWS);
    float *got = check_output(row, c->cols), *want = check_output(row, c->cols);
    while (check_again(row, 4.0 * c->cols * (c->used + 1), 2.0 * c->cols * c->used))
        kernels_table(c->isa)->combine(x, at, weight, c->used, c->cols, got);
    bool scalar = c->isa == CPU_SCALAR;
    (scalar ? kernels_ref() : kernels_table(CPU_SCALAR))
        ->combine(x, at, weight, c->used, c->cols, want);
    if (!scalar) check_equal(row, got, want, c->cols);
    else if (c->kind != ODD) check_close(row, got, want, c->cols, (struct check_bound){2e-5, 1e-6});
}

void check_experts(struct check *check) {
    static const uint32_t counts[][2] = {{1, 1},   {4, 2},   {15, 15}, {16, 4},
                                         {60, 17}, {128, 8}, {257, ROUTE_USED_MAX}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct experts_case c = {.experts = counts[i][0], .used = counts[i][1]};
        check_run(check, run_group, &c, "experts_group.%u_of_%u", c.used, c.experts);
    }
    CHECK_ISAS(check, isa)
        for (int kind = 0; kind < KINDS; kind++) {
            struct experts_case c = {.isa = isa, .kind = (enum kind)kind};
            const char *name = cpu_isa_name(isa);
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
                for (int score = 0; score < ROUTE_SCORES; score++) {
                    c.score = (enum route_score)score;
                    c.experts = counts[i][0];
                    c.used = counts[i][1];
                    const char *of = score_name[score];
                    check_run(check, run_route, &c, "route_%s.%s.%s.%u_of_%u", of, name,
                              kind_name[kind], c.used, c.experts);
                    if (kind == PLAIN && score <= ROUTE_SOFTMAX_CHOSEN)
                        check_run(check, run_nan, &c, "route_%s.%s.nan.%u_of_%u", of, name, c.used,
                                  c.experts);
                }
            for (int s = 0; s < CHECK_SIZES && kind != TIES; s++) {
                c.used = 1 + (uint32_t)s;
                c.cols = check_size[s];
                check_run(check, run_combine, &c, "combine.%s.%s.n%u", name, kind_name[kind],
                          c.cols);
            }
        }
}
