/* SPDX-License-Identifier: Apache-2.0
 * check_norm.c: RMS and layer norm. */
#include "check.h"
#include "kernels/kernels.h"

struct norm_case {
    bool layer, weight, bias, small; /* small: eps counts */
    enum cpu_isa isa;
    uint32_t n;
};

static void call(const struct norm_case *c, const struct kernels *k, const float *x, const float *w,
                 const float *b, float *y) {
    (c->layer ? k->norm_layer : k->norm_rms)(x, c->weight ? w : NULL, c->bias ? b : NULL, 1e-5f, y,
                                             c->n);
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
    for (int kind = 0; kind < 8; kind++)
        CHECK_ISAS(check, isa)
            for (int s = 0; s < CHECK_SIZES; s++) {
                struct norm_case c = {kind & 1, kind & 2, kind & 4, s % 2, isa, check_size[s]};
                check_run(check, run, &c, "norm_%s%s%s.%s.n%u", c.layer ? "layer" : "rms",
                          c.weight ? "_w" : "", c.bias ? "_b" : "", cpu_isa_name(isa), c.n);
            }
}
