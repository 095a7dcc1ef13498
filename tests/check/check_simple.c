/* SPDX-License-Identifier: Apache-2.0
 * check_simple.c: the ops that work element by element or move columns. */
#include <math.h>

#include "check.h"
#include "kernels/kernels.h"

typedef void call_fn(const struct kernels *k, const float *a, const float *b, float *y, size_t n);

static void call_add(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    k->add(a, b, y, n);
}
static void call_scale(const struct kernels *k, const float *a, const float *b, float *y,
                       size_t n) {
    k->scale(a, b[0], y, n);
}
static void call_softcap(const struct kernels *k, const float *a, const float *b, float *y,
                         size_t n) {
    (void)b;
    k->softcap(a, 7, y, n);
}
static void call_clamp(const struct kernels *k, const float *a, const float *b, float *y,
                       size_t n) {
    (void)b;
    k->clamp(a, -2, 3.5f, y, n);
}
static void call_mul(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    k->mul(a, b, y, n, 1);
}
static void call_affine(const struct kernels *k, const float *a, const float *b, float *y,
                        size_t n) {
    k->affine(a, b, a, y, n);
}
static void call_affine_w(const struct kernels *k, const float *a, const float *b, float *y,
                          size_t n) {
    k->affine(a, b, NULL, y, n);
}
static void call_affine_b(const struct kernels *k, const float *a, const float *b, float *y,
                          size_t n) {
    k->affine(a, NULL, b, y, n);
}
static void call_glu_clamped(const struct kernels *k, const float *a, const float *b, float *y,
                             size_t n) {
    k->glu_clamped(a, b, &(struct glu_clamp){1.702f, 7, 2, 1}, y, n);
}
/* Once without limits. */
static void call_glu_swish(const struct kernels *k, const float *a, const float *b, float *y,
                           size_t n) {
    k->glu_clamped(a, b, &(struct glu_clamp){1, INFINITY, INFINITY, 0}, y, n);
}
static void call_xielu(const struct kernels *k, const float *a, const float *b, float *y,
                       size_t n) {
    (void)b;
    k->xielu(a, &(struct xielu){0.8f, 1.3f, 0.5f, -1e-6f}, y, n);
}
/* One sum, of which all but the first of y know nothing. */
static void call_dot(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    for (size_t i = 1; i < n; i++) y[i] = 0;
    y[0] = k->dot(a, b, (uint32_t)n);
}
static void call_sparsify(const struct kernels *k, const float *a, const float *b, float *y,
                          size_t n) {
    (void)b;
    k->sparsify(a, 0.7f, y, (uint32_t)n);
}
static void call_match_rms(const struct kernels *k, const float *a, const float *b, float *y,
                           size_t n) {
    k->match_rms(a, b, 30, y, (uint32_t)n);
}
static void call_round_act(const struct kernels *k, const float *a, const float *b, float *y,
                           size_t n) {
    (void)b;
    float step;
    k->round_act(a, y, &step, (uint32_t)n);
    k->scale(y, step, y, n);
}

/* Sums of groups of a seventh, as far as n goes; the rest stays. */
static void call_mix(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    uint32_t width = (uint32_t)n / 7;
    k->scale(a, 1, y, n);
    if (width >= 3) k->mix(a, b, 7, 3, width, y);
}
/* The largest matrix. */
static void call_sinkhorn(const struct kernels *k, const float *a, const float *b, float *y,
                          size_t n) {
    uint32_t side = 1;
    while ((side + 1) * (side + 1) <= n && side < 32) side++;
    k->scale(a, 1, y, n);
    k->sinkhorn(b, side, 4, 1e-6f, y);
}

static const struct simple_op {
    const char *name;
    call_fn *call;
    struct check_bound bound;
    double grows; /* the absolute bound, with n */
} ops[] = {
    {"add", call_add, {0, 0}, 0},
    {"scale", call_scale, {0, 0}, 0},
    {"softcap", call_softcap, {0, 3e-7}, 0},
    {"clamp", call_clamp, {0, 0}, 0},
    {"mul", call_mul, {0, 0}, 0},
    {"affine", call_affine, {3e-6, 2e-7}, 0}, /* of the product's rounding a sum can leave all */
    {"affine_w", call_affine_w, {0, 0}, 0},
    {"affine_b", call_affine_b, {0, 0}, 0},
    {"glu_clamped", call_glu_clamped, {1e-6, 1e-6}, 0},
    {"glu_swish", call_glu_swish, {1e-30, 4e-7}, 0},
    {"xielu", call_xielu, {3e-7, 3e-7}, 0},
    {"dot", call_dot, {1e-6, 1e-6}, 4e-7}, /* six deviations of the rounding of 16 lanes' sums */
    {"sparsify", call_sparsify, {1e-5, 1e-6}, 0},
    {"match_rms", call_match_rms, {1e-30, 1e-6}, 0},
    {"round_act", call_round_act, {0, 0}, 0},
    {"mix", call_mix, {1e-5, 1e-6}, 0},
    {"sinkhorn", call_sinkhorn, {1e-7, 2e-5}, 0},
};

struct simple_case { const struct simple_op *op; enum cpu_isa isa; uint32_t n; };

static void run(struct check_row *row, const void *arg) {
    const struct simple_case *c = arg;
    const float *a = check_input(row, c->n, -12, 12), *b = check_input(row, c->n, -3, 3);
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    while (check_again(row, 12.0 * c->n, 0)) c->op->call(kernels_table(c->isa), a, b, got, c->n);
    if (c->isa == CPU_SCALAR) {
        c->op->call(kernels_ref(), a, b, want, c->n);
        struct check_bound bound = c->op->bound;
        bound.absolute += c->op->grows * c->n;
        check_close(row, got, want, c->n, bound);
    } else {
        c->op->call(kernels_table(CPU_SCALAR), a, b, want, c->n);
        check_equal(row, got, want, c->n);
    }
}

static void make_odd(struct check_row *row, float *x, uint32_t n, uint32_t every) {
    const float odd[] = {INFINITY, -INFINITY, NAN, 1e38f, -1e38f, 0};
    for (uint32_t i = 0; i < n; i++)
        if (check_below(row, every) == 0) x[i] = odd[check_below(row, 6)];
}

/* Infinities and NaN must come out as they do from scalar. */
static void run_odd(struct check_row *row, const void *arg) {
    const struct simple_case *c = arg;
    float *a = check_input(row, c->n, -2, 2), *b = check_input(row, c->n, -2, 2);
    make_odd(row, a, c->n, 3);
    make_odd(row, b, c->n, 9);
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    c->op->call(kernels_table(c->isa), a, b, got, c->n);
    c->op->call(kernels_table(CPU_SCALAR), a, b, want, c->n);
    check_equal(row, got, want, c->n);
}

/* ---- activations ---- */

/* The absolute bounds of the GELUs: 1 + tanh(x) cancels below zero in ref, 1 + erf(x) in ours. */
static const struct act_op { const char *name; struct check_bound bound; } acts[ACT_KINDS] = {
    [ACT_SILU] = {"silu", {1e-30, 4e-7}},
    [ACT_GELU_TANH] = {"gelu_tanh", {1e-13, 4e-6}},
    [ACT_GELU_ERF] = {"gelu_erf", {5e-6, 4e-7}},
    [ACT_GELU_QUICK] = {"gelu_quick", {1e-30, 2e-6}},
    [ACT_RELU] = {"relu", {0, 0}},
    [ACT_RELU2] = {"relu2", {0, 2e-7}},
    [ACT_SIGMOID] = {"sigmoid", {1e-30, 4e-7}},
    [ACT_TANH] = {"tanh", {0, 3e-7}},
    [ACT_SOFTPLUS] = {"softplus", {1e-30, 4e-7}},
    [ACT_EXP] = {"exp", {0, 3e-7}},
    [ACT_ROOT] = {"root", {0, 2e-7}},
    [ACT_IDENTITY] = {"identity", {0, 0}},
};

struct act_case {
    enum act_kind kind;
    enum cpu_isa isa;
    uint32_t n, run; /* run 0: the activation alone */
    bool odd;
};

static void call_act(const struct act_case *c, const struct kernels *k, const float *gate,
                     const float *up, float *y) {
    if (c->run == 0) k->act[c->kind](gate, y, c->n);
    else k->glu[c->kind](gate, up, y, c->n, c->run);
}

static void run_act(struct check_row *row, const void *arg) {
    const struct act_case *c = arg;
    uint32_t gates = c->run > 1 ? c->n / c->run : c->n;
    float *gate = check_input(row, gates, -12, c->kind == ACT_SOFTPLUS ? 25 : 12);
    float *up = check_input(row, c->n, -3, 3);
    if (c->odd) make_odd(row, gate, gates, 3);
    if (c->odd) make_odd(row, up, c->n, 9);
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    while (check_again(row, 12.0 * c->n, 0)) call_act(c, kernels_table(c->isa), gate, up, got);
    bool scalar = c->isa == CPU_SCALAR;
    call_act(c, scalar && !c->odd ? kernels_ref() : kernels_table(CPU_SCALAR), gate, up, want);
    if (!scalar || c->odd) check_equal(row, got, want, c->n);
    else check_close(row, got, want, c->n, acts[c->kind].bound);
}

static void check_act(struct check *check, enum act_kind kind, enum cpu_isa isa) {
    static const char *const form[] = {"act", "glu"};
    const char *name = acts[kind].name, *on = cpu_isa_name(isa);
    struct act_case c = {.kind = kind, .isa = isa};
    for (c.run = 0; c.run < 2; c.run++) {
        for (int s = 0; s < CHECK_SIZES; s++) {
            c.n = check_size[s];
            check_run(check, run_act, &c, "%s_%s.%s.n%u", form[c.run], name, on, c.n);
        }
        struct act_case odd = {kind, isa, 1009, c.run, true};
        check_run(check, run_act, &odd, "%s_%s.%s.odd", form[c.run], name, on);
    }
    for (c.run = 3; c.run < 100; c.run += 37) {
        c.n = 7 * c.run;
        check_run(check, run_act, &c, "glu_%s.%s.run%u", name, on, c.run);
    }
}

/* ---- a narrower factor ---- */

struct mul_case { enum cpu_isa isa; uint32_t run; };

static void run_mul(struct check_row *row, const void *arg) {
    enum { RUNS = 5 };
    const struct mul_case *c = arg;
    size_t n = (size_t)RUNS * c->run;
    const float *a = check_input(row, n, -3, 3), *b = check_input(row, RUNS, -3, 3);
    float *got = check_output(row, n), *want = check_output(row, n);
    kernels_table(c->isa)->mul(a, b, got, n, c->run);
    kernels_ref()->mul(a, b, want, n, c->run);
    check_equal(row, got, want, n);
}

/* ---- the factor of a position: all ISAs share one function ---- */

static void run_position(struct check_row *row, const void *arg) {
    (void)arg;
    enum { N = 20000 };
    float *got = check_output(row, N), *want = check_output(row, N);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t pos = i < 3000 ? i : check_below(row, 1 << 24);
        float period = (float)(1 + check_below(row, 8192));
        got[i] = kernels_table(CPU_SCALAR)->position_factor(pos, 0.1f, i % 2, period);
        want[i] = kernels_ref()->position_factor(pos, 0.1f, i % 2, period);
    }
    check_close(row, got, want, N, (struct check_bound){0, 1.3e-7});
    for (uint32_t i = 0; i < N; i++) {
        uint32_t pos = i < 3000 ? i : check_below(row, 1 << 24);
        float period = (float)(1 + check_below(row, 8192));
        got[i] = kernels_table(CPU_SCALAR)->position_log(pos, 0.1f, i % 2, period);
        want[i] = kernels_ref()->position_log(pos, 0.1f, i % 2, period);
        if ((float)pos + (float)(i % 2) <= period) CHECK_THAT(row, got[i] == 1);
    }
    check_close(row, got, want, N, (struct check_bound){0, 1.3e-7});
    for (uint32_t i = 0; i < N; i++) {
        uint32_t pos = check_below(row, 1 << 24);
        float exponent = (float)i / N * 4 - 2, period = (float)(1 + check_below(row, 8192));
        got[i] = kernels_table(CPU_SCALAR)->position_power(pos, exponent, i % 2, period);
        want[i] = kernels_ref()->position_power(pos, exponent, i % 2, period);
    }
    check_close(row, got, want, N, (struct check_bound){0, 1.3e-7});
    /* What Llama 4 and Ministral 3 scale by: 0.1, 1, 8192 and 0.1, 0, 16384. */
    CHECK_THAT(row, kernels_table(CPU_SCALAR)->position_factor(8190, 0.1f, 1, 8192) == 1);
    CHECK_THAT(row, kernels_table(CPU_SCALAR)->position_factor(8191, 0.1f, 1, 8192) > 1.06f);
    CHECK_THAT(row, kernels_table(CPU_SCALAR)->position_factor(16383, 0.1f, 0, 16384) == 1);
    CHECK_THAT(row, kernels_table(CPU_SCALAR)->position_factor(16384, 0.1f, 0, 16384) > 1.06f);
}

/* ---- columns moved: every table has one function, held against the index it moves by ---- */

static void run_moves(struct check_row *row, const void *arg) {
    (void)arg;
    enum { GROUPS = 4, A = 5, B = 3, TIMES = 3, C = A + B };
    const struct kernels *k = kernels_table(CPU_SCALAR);
    const float *a = check_input(row, GROUPS * A, -1, 1), *b = check_input(row, GROUPS * B, -1, 1);
    for (int once = 0; once < 4; once++) {
        bool a_once = once & 1, b_once = once & 2;
        float *y = check_output(row, GROUPS * C), *part = check_output(row, GROUPS * 4);
        k->concat(&(struct concat){a, b, A, B, GROUPS, a_once, b_once}, y);
        for (int i = 0; i < GROUPS * C; i++) {
            int g = i / C, at = i % C;
            float want = at < A ? a[(a_once ? 0 : g * A) + at] : b[(b_once ? 0 : g * B) + at - A];
            CHECK_THAT(row, y[i] == want);
        }
        k->slice(y, GROUPS, C, 2, 4, part);
        for (int i = 0; i < GROUPS * 4; i++) CHECK_THAT(row, part[i] == y[i / 4 * C + 2 + i % 4]);
    }
    float *y = check_output(row, GROUPS * A * TIMES);
    k->tile(a, GROUPS, A, TIMES, y);
    for (int i = 0; i < GROUPS * A * TIMES; i++)
        CHECK_THAT(row, y[i] == a[i / (A * TIMES) * A + i % A]);
}

/* After many rounds rows, and columns, have sums of 1. */
static void run_balance(struct check_row *row, const void *arg) {
    enum { N = 5 };
    const enum cpu_isa *isa = arg;
    float *y = check_output(row, N * N);
    kernels_table(*isa)->sinkhorn(check_input(row, N * N, -4, 4), N, 300, 1e-6f, y);
    for (int i = 0; i < N; i++) {
        float rows = 0, columns = 0;
        for (int k = 0; k < N; k++) rows += y[i * N + k], columns += y[k * N + i];
        CHECK_THAT(row, fabsf(rows - 1) < 1e-3f && fabsf(columns - 1) < 1e-5f);
    }
}

/* ---- poolings: one function for all tables, against numbers worked out by hand ---- */

static void run_pool(struct check_row *row, const void *arg) {
    (void)arg;
    enum { ROWS = 4, COLS = 2 };
    static const float x[ROWS * COLS] = {1, -8, 5, -4, 3, -6, -1, -2};
    static const float want[POOL_KINDS][COLS] = {
        [POOL_FIRST] = {1, -8},     [POOL_MAX] = {5, -2},           [POOL_MEAN] = {2, -5},
        [POOL_MEAN_SQRT] = {4, -10}, [POOL_WEIGHTED] = {1.6f, -4.2f}, [POOL_LAST] = {-1, -2}};
    const struct kernels *k = kernels_table(CPU_SCALAR);
    for (enum pool_kind kind = 0; kind < POOL_KINDS; kind++) {
        float *y = check_output(row, COLS);
        k->pool(kind, x, ROWS, COLS, y);
        check_equal(row, y, want[kind], COLS);
        k->pool(kind, x, 1, COLS, y); /* of one row itself */
        check_equal(row, y, x, COLS);
    }
    float spoiled[3] = {1, NAN, 2}, y;
    k->pool(POOL_MAX, spoiled, 3, 1, &y);
    CHECK_THAT(row, isnan(y));
}

void check_simple(struct check *check) {
    CHECK_ISAS(check, isa)
        check_run(check, run_balance, &isa, "sinkhorn.%s.sums", cpu_isa_name(isa));
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        CHECK_ISAS(check, isa) {
            struct simple_case c = {&ops[i], isa, 0};
            for (int s = 0; s < CHECK_SIZES; s++) {
                c.n = check_size[s];
                check_run(check, run, &c, "%s.%s.n%u", c.op->name, cpu_isa_name(isa), c.n);
            }
            c.n = 1009;
            check_run(check, run_odd, &c, "%s.%s.odd", c.op->name, cpu_isa_name(isa));
        }
    for (int kind = 0; kind < ACT_KINDS; kind++)
        CHECK_ISAS(check, isa) check_act(check, (enum act_kind)kind, isa);
    CHECK_ISAS(check, isa)
        for (uint32_t run = 2; run < 200; run = 3 * run - 1) {
            struct mul_case c = {isa, run};
            check_run(check, run_mul, &c, "mul.%s.run%u", cpu_isa_name(isa), run);
        }
    check_run(check, run_position, NULL, "position_factor");
    check_run(check, run_moves, NULL, "concat_slice_tile");
    check_run(check, run_pool, NULL, "pool");
}
