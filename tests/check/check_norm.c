/* SPDX-License-Identifier: Apache-2.0
 * check_norm.c: RMS, layer and L2 norms. */
#include "check.h"
#include "kernels/kernels.h"

struct norm_case {
    enum norm_kind kind;
    bool weight, bias, small; /* small: eps counts */
    enum cpu_isa isa;
    uint32_t n;
};

static void call(const struct norm_case *c, const struct kernels *k, const float *x, const float *w,
                 const float *b, float *y) {
    float eps = c->kind == NORM_L2 ? 1e-2f : 1e-5f;
    k->norm[c->kind](x, c->weight ? w : NULL, c->bias ? b : NULL, eps, y, c->n);
}

static void run(struct check_row *row, const void *arg) {
    const struct norm_case *c = arg;
    float size = c->small ? 1e-3f : 1;
    const float *x = check_input(row, c->n, -3 * size, 5 * size);
    const float *w = check_input(row, c->n, -2, 2);
    const float *b = check_input(row, c->n, -1, 1);
    float *got = check_output(row, c->n), *want = check_output(row, c->n);
    while (check_again(row, 12.0 * c->n, 0)) call(c, kernels_table(c->isa), x, w, b, got);
    if (c->isa == CPU_SCALAR) {
        call(c, kernels_ref(), x, w, b, want);
        check_close(row, got, want, c->n, (struct check_bound){3e-6, 3e-6});
    } else {
        call(c, kernels_table(CPU_SCALAR), x, w, b, want);
        check_equal(row, got, want, c->n);
    }
}

void check_norm(struct check *check) {
    static const char *const name[NORM_KINDS] = {"rms", "layer", "l2", "l2_sum"};
    for (int kind = 0; kind < 4 * NORM_KINDS; kind++)
        CHECK_ISAS(check, isa)
            for (int s = 0; s < CHECK_SIZES; s++) {
                struct norm_case c = {(enum norm_kind)(kind / 4), kind & 1, kind & 2, s % 2, isa,
                                      check_size[s]};
                check_run(check, run, &c, "norm_%s%s%s.%s.n%u", name[c.kind],
                          c.weight ? "_w" : "", c.bias ? "_b" : "", cpu_isa_name(isa), c.n);
            }
}
