/* SPDX-License-Identifier: Apache-2.0
 *
 * check_route.c: routers by all that describes them, held against an account of their own: scores
 * in double, choices by counting who is above whom. check_experts.c has what no bias or group
 * changes. Inputs are such that no choice hangs on rounding. */
#include <math.h>

#include "check.h"
#include "kernels/kernels.h"

struct route_case {
    const char *name;
    struct route_job job;
    bool bias, expert_scale, given;
    enum cpu_isa isa;
};

enum { EXPERTS_MAX = 256 };

/* ---- the account ---- */

static double score_of(const struct route_job *j, const float *x, uint32_t e) {
    double sum = 0;
    switch (j->score) {
    case ROUTE_SOFTMAX:
        for (uint32_t i = 0; i < j->experts; i++) sum += exp((double)x[i] - x[e]);
        return 1 / sum;
    case ROUTE_SIGMOID: return 1 / (1 + exp(-(double)x[e]));
    case ROUTE_SQRT_SOFTPLUS: return sqrt(log(1 + exp((double)x[e])));
    default: return x[e];
    }
}

static double group_value(const struct route_job *j, const double *by, uint32_t group) {
    uint32_t size = j->experts / j->groups;
    double first = -INFINITY, second = -INFINITY;
    for (uint32_t i = 0; i < size; i++) {
        double v = by[group * size + i];
        if (v > first) second = first, first = v;
        else if (v > second) second = v;
    }
    return j->group == ROUTE_GROUP_TOP2 ? first + second : first;
}

/* What experts are chosen by; false where two groups are so near that rounding could swap them. */
static bool choice_values(const struct route_job *j, const float *x, double *by) {
    double value[EXPERTS_MAX];
    bool clear = true;
    for (uint32_t e = 0; e < j->experts; e++)
        by[e] = (j->bias_to_logits ? (double)x[e] : score_of(j, x, e)) + (j->bias ? j->bias[e] : 0);
    if (j->groups <= 1) return true;
    for (uint32_t g = 0; g < j->groups; g++) value[g] = group_value(j, by, g);
    for (uint32_t g = 0; g < j->groups; g++) {
        uint32_t above = 0, size = j->experts / j->groups;
        for (uint32_t k = 0; k < j->groups; k++) {
            above += value[k] > value[g];
            clear &= k == g || fabs(value[k] - value[g]) > 2e-5;
        }
        for (uint32_t i = 0; above >= j->groups_used && i < size; i++)
            by[g * size + i] = j->group_zero ? 0 : -INFINITY;
    }
    return clear;
}

/* got: the weights, then the experts. */
static void check_account(struct check_row *row, const struct route_job *j, const float *x,
                          const double *by, const float *got) {
    uint32_t choices = j->experts - j->always, chosen = j->used - j->always;
    const float *expert = got + j->used;
    double weight[ROUTE_USED_MAX], sum = 0;
    for (uint32_t i = 0; i < chosen; i++) {
        uint32_t above = 0, own = (uint32_t)expert[i];
        for (uint32_t e = 0; e < choices; e++)
            above += by[e] > by[own] || (by[e] == by[own] && e < own);
        if (j->chosen) CHECK_THAT(row, expert[i] == j->chosen[i]);
        else if (own >= choices || above != i)
            check_end(row, "expert %u comes as number %u, not %u", own, i, above);
    }
    for (uint32_t i = chosen; i < j->used; i++)
        CHECK_THAT(row, expert[i] == (float)(choices + i - chosen));
    for (uint32_t i = 0; i < j->used; i++) {
        weight[i] = score_of(j, x, (uint32_t)expert[i]);
        if (j->score == ROUTE_SOFTMAX_CHOSEN) weight[i] = exp(weight[i]);
        sum += weight[i];
    }
    for (uint32_t i = 0; i < j->used; i++) {
        double w = weight[i] * j->scale;
        if (j->score == ROUTE_SOFTMAX_CHOSEN) w /= sum;
        else if (j->normalize) w /= sum + j->normalize_eps;
        if (j->expert_scale) w *= j->expert_scale[(uint32_t)expert[i]];
        if (!(fabs(got[i] - w) <= 2e-6 * fabs(w)))
            check_fail(row, "weight %u is %.9g, should be %.9g", i, got[i], w);
    }
    check_compared(row, 2 * j->used, 0);
}

/* ---- rows ---- */

/* As many different logits in any order. */
static float *make_logits(struct check_row *row, uint32_t n) {
    float *x = check_input(row, n, 0, 1);
    for (uint32_t e = 0; e < n; e++) x[e] = 3 * ((float)e + 0.5f) / (float)n - 1.5f;
    for (uint32_t e = n - 1; e > 0; e--) {
        uint32_t k = check_below(row, e + 1);
        float t = x[e];
        x[e] = x[k];
        x[k] = t;
    }
    return x;
}

static void run(struct check_row *row, const void *arg) {
    const struct route_case *c = arg;
    struct route_job j = c->job;
    double by[EXPERTS_MAX];
    float *x, *bias = check_input(row, j.experts, 0, 1);
    if (c->bias) j.bias = bias;
    if (c->expert_scale) j.expert_scale = check_input(row, j.experts, 0.5f, 2);
    float *given = check_input(row, j.used, 0, 1);
    for (uint32_t i = 0; i < j.used; i++) given[i] = (float)check_below(row, j.experts);
    if (c->given) j.chosen = given;
    do {
        x = make_logits(row, j.experts);
        for (uint32_t e = 0; e < j.experts; e++) bias[e] = 4 * (float)check_below(row, 3) - 4;
    } while (!choice_values(&j, x, by));
    float *got = check_output(row, 2 * j.used), *want = check_output(row, 2 * j.used);
    kernels_table(c->isa)->route(&j, x, got);
    check_account(row, &j, x, by, got);
    (c->isa == CPU_SCALAR ? kernels_ref() : kernels_table(CPU_SCALAR))->route(&j, x, want);
    if (c->isa == CPU_SCALAR) check_account(row, &j, x, by, want);
    else check_equal(row, got, want, 2 * j.used);
}

/* Two tokens as transformers' sparsemixer routes them with a jitter of 0.01. */
static void run_sparsemixer(struct check_row *row, const void *arg) {
    static const struct { float x[5], weight[2], expert[2]; } token[] = {
        {{1, 0.985000014f, 0.5f, -2, 0.982500017f}, {0.336953998f, 0.500625014f}, {0, 1}},
        {{-1, -3, -1.01499999f, -1.00999999f, 0.25f}, {1, 0.336116165f}, {4, 0}},
        {{2, 2, 1.9375f, 1.96875f, -2}, {0.336787283f, 0.507811844f}, {0, 1}},
    };
    const enum cpu_isa *isa = arg;
    const struct route_job j = {.score = ROUTE_SPARSEMIXER, .experts = 5, .used = 2, .scale = 1,
                                .jitter_eps = 0.01f};
    for (size_t i = 0; i < sizeof token / sizeof token[0]; i++)
        for (int ref = 0; ref < 2; ref++) {
            float *got = check_output(row, 4);
            (ref ? kernels_ref() : kernels_table(*isa))->route(&j, token[i].x, got);
            check_close(row, got, token[i].weight, 2, (struct check_bound){0, 1e-6});
            check_equal(row, got + 2, token[i].expert, 2);
        }
}

static void run_rest(struct check_row *row, const void *arg) {
    (void)arg;
    const float route[] = {0.5f, 0.25f, 2, 0.125f, 6, 1, 4, 3};
    for (uint32_t first = 0; first < 8; first++) {
        float want = 0, got;
        for (uint32_t i = 0; i < 4; i++) want += route[4 + i] >= (float)first ? route[i] : 0;
        kernels_table(CPU_SCALAR)->route_rest(route, 4, first, &got);
        check_equal(row, &got, &want, 1);
    }
}

void check_route(struct check *check) {
    static const struct route_case cases[] = {
        {.name = "deepseek_v2",
         .job = {.score = ROUTE_SOFTMAX, .experts = 160, .used = 6, .groups = 8, .groups_used = 3,
                 .group = ROUTE_GROUP_MAX, .group_zero = true, .scale = 16}},
        {.name = "deepseek_v3",
         .job = {.score = ROUTE_SIGMOID, .experts = 256, .used = 8, .groups = 8, .groups_used = 4,
                 .group = ROUTE_GROUP_TOP2, .normalize = true, .normalize_eps = 1e-20f,
                 .scale = 2.5f},
         .bias = true},
        {.name = "deepseek_v4",
         .job = {.score = ROUTE_SQRT_SOFTPLUS, .experts = 64, .used = 6, .normalize = true,
                 .normalize_eps = 1e-20f, .scale = 1.5f},
         .bias = true},
        {.name = "deepseek_v4_by_id",
         .job = {.score = ROUTE_SQRT_SOFTPLUS, .experts = 64, .used = 6, .normalize = true,
                 .normalize_eps = 1e-20f, .scale = 1.5f},
         .given = true},
        {.name = "axk2",
         .job = {.score = ROUTE_SIGMOID, .experts = 60, .used = 8, .groups = 6, .groups_used = 2,
                 .group = ROUTE_GROUP_TOP2, .group_zero = true, .scale = 1},
         .bias = true},
        {.name = "mistral4",
         .job = {.score = ROUTE_SOFTMAX, .experts = 48, .used = 4, .groups = 12, .groups_used = 5,
                 .group = ROUTE_GROUP_TOP2, .normalize = true, .scale = 1}},
        {.name = "lfm2",
         .job = {.score = ROUTE_SIGMOID, .experts = 33, .used = 5, .normalize = true,
                 .normalize_eps = 0.5f, .scale = 1},
         .bias = true},
        {.name = "kolibri1",
         .job = {.score = ROUTE_SIGMOID, .bias_to_logits = true, .experts = 17, .used = 17,
                 .normalize = true, .scale = 1},
         .bias = true},
        {.name = "gemma4",
         .job = {.score = ROUTE_SOFTMAX, .experts = 128, .used = 8, .normalize = true, .scale = 1},
         .expert_scale = true},
        {.name = "longcat",
         .job = {.score = ROUTE_SOFTMAX, .experts = 100, .used = 12, .scale = 6},
         .bias = true},
        {.name = "inkling",
         .job = {.score = ROUTE_SIGMOID, .experts = 34, .used = 6, .always = 2, .normalize = true,
                 .scale = 0.5f},
         .bias = true},
        {.name = "chosen",
         .job = {.score = ROUTE_SOFTMAX_CHOSEN, .experts = 32, .used = 20, .scale = 3},
         .bias = true},
        {.name = "identity",
         .job = {.score = ROUTE_IDENTITY, .experts = 20, .used = 3, .scale = 1},
         .bias = true},
    };
    CHECK_ISAS(check, isa) {
        const char *name = cpu_isa_name(isa);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct route_case c = cases[i];
            c.isa = isa;
            check_run(check, run, &c, "route_of_%s.%s", c.name, name);
        }
        check_run(check, run_sparsemixer, &isa, "route_of_phimoe.%s", name);
    }
    check_run(check, run_rest, NULL, "route_rest");
}
