/* SPDX-License-Identifier: Apache-2.0
 * check_simple.c: the ops that work element by element. */
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
static void call_silu(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    k->glu_silu(a, b, y, n);
}
static void call_gelu_tanh(const struct kernels *k, const float *a, const float *b, float *y,
                           size_t n) {
    k->glu_gelu_tanh(a, b, y, n);
}
static void call_gelu_erf(const struct kernels *k, const float *a, const float *b, float *y,
                          size_t n) {
    k->glu_gelu_erf(a, b, y, n);
}
static void call_relu(const struct kernels *k, const float *a, const float *b, float *y, size_t n) {
    k->glu_relu(a, b, y, n);
}

/* The absolute bounds of the GELUs: 1 + tanh(x) cancels below zero in ref, 1 + erf(x) in ours. */
static const struct simple_op {
    const char *name;
    call_fn *call;
    struct check_bound bound;
} ops[] = {
    {"add", call_add, {0, 0}},
    {"scale", call_scale, {0, 0}},
    {"softcap", call_softcap, {0, 3e-7}},
    {"glu_silu", call_silu, {1e-30, 4e-7}},
    {"glu_gelu_tanh", call_gelu_tanh, {1e-13, 4e-6}},
    {"glu_gelu_erf", call_gelu_erf, {5e-6, 4e-7}},
    {"glu_relu", call_relu, {0, 0}},
};

struct simple_case { const struct simple_op *op; enum cpu_isa isa; uint32_t n; };

static void run(struct check_row *row, const void *arg) {
    const struct simple_case *c = arg;
    const float *a = check_input(row, c->n, -12, 12), *b = check_input(row, c->n, -3, 3);
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    while (check_again(row, 12.0 * c->n, 0)) c->op->call(kernels_table(c->isa), a, b, got, c->n);
    if (c->isa == CPU_SCALAR) {
        c->op->call(kernels_ref(), a, b, want, c->n);
        check_close(row, got, want, c->n, c->op->bound);
    } else {
        c->op->call(kernels_table(CPU_SCALAR), a, b, want, c->n);
        check_equal(row, got, want, c->n);
    }
}

/* Infinities and NaN must come out as they do from scalar. */
static void run_odd(struct check_row *row, const void *arg) {
    const struct simple_case *c = arg;
    const float odd[] = {__builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 1e38f, -1e38f, 0};
    float *a = check_input(row, c->n, -2, 2), *b = check_input(row, c->n, -2, 2);
    for (uint32_t i = 0; i < c->n; i++) {
        if (check_below(row, 3) == 0) a[i] = odd[check_below(row, 6)];
        if (check_below(row, 9) == 0) b[i] = odd[check_below(row, 6)];
    }
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    c->op->call(kernels_table(c->isa), a, b, got, c->n);
    c->op->call(kernels_table(CPU_SCALAR), a, b, want, c->n);
    check_equal(row, got, want, c->n);
}

void check_simple(struct check *check) {
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
}
