/* SPDX-License-Identifier: Apache-2.0
 * check_rope.c: the table of angles, and rotating by it. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"

/* ---- table: all ISAs share one function ---- */

static void run_table(struct check_row *row, const void *arg) {
    enum { HALF = 61 };
    uint32_t pos = *(const uint32_t *)arg;
    float *freq = check_input(row, HALF, 0, 1);
    for (int i = 0; i < HALF; i++) freq[i] = powf(10000, -(float)i / HALF);
    float *got = check_output(row, 2 * HALF), *want = check_output(row, 2 * HALF);
    while (check_again(row, 4.0 * 3 * HALF, 0))
        kernels_table(CPU_SCALAR)->rope_table(pos, freq, HALF, 1.25f, got);
    kernels_ref()->rope_table(pos, freq, HALF, 1.25f, want);
    check_close(row, got, want, 2 * HALF, (struct check_bound){2e-10, 1.5e-7});
}

/* ---- rotation ---- */

struct rope_case { enum cpu_isa isa; uint32_t half, head_dim; bool interleaved, in_place; };

static void run(struct check_row *row, const void *arg) {
    enum { HEADS = 3 };
    const struct rope_case *c = arg;
    size_t n = HEADS * (size_t)c->head_dim;
    const float *x = check_input(row, n, -4, 4), *table = check_input(row, 2 * c->half, -1, 1);
    float *got = check_output(row, n), *want = check_output(row, n);
    if (c->in_place) memcpy(got, x, n * sizeof *got);
    kernels_table(c->isa)->rope(c->in_place ? got : x, table, got, HEADS, c->head_dim, c->half,
                                c->interleaved);
    const struct kernels *other = c->isa == CPU_SCALAR ? kernels_ref() : kernels_table(CPU_SCALAR);
    other->rope(x, table, want, HEADS, c->head_dim, c->half, c->interleaved);
    if (c->isa == CPU_SCALAR) check_close(row, got, want, n, (struct check_bound){5e-7, 2e-7});
    else check_equal(row, got, want, n);
}

void check_rope(struct check *check) {
    static const uint32_t pos[] = {0, 1, 2, 1000, 131071, 1048575};
    for (size_t i = 0; i < sizeof pos / sizeof pos[0]; i++)
        check_run(check, run_table, &pos[i], "rope_table.pos%u", pos[i]);
    static const uint32_t half[] = {1, 4, 8, 16, 17, 32, 48, 64, 128};
    for (int kind = 0; kind < 4; kind++)
        CHECK_ISAS(check, isa)
            for (size_t i = 0; i < sizeof half / sizeof half[0]; i++)
                for (uint32_t rest = 0; rest < 10; rest += 5) {
                    struct rope_case c = {isa, half[i], 2 * half[i] + rest, kind & 1, kind & 2};
                    check_run(check, run, &c, "rope_%s%s.%s.half%u_of_%u",
                              c.interleaved ? "pairs" : "halves", c.in_place ? "_in_place" : "",
                              cpu_isa_name(isa), c.half, c.head_dim);
                }
}
