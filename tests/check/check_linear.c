/* SPDX-License-Identifier: Apache-2.0
 * check_linear.c: matrix products of every format, and the rows that they take. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"

struct linear_case { const struct quant *quant; enum cpu_isa isa; uint32_t rows, cols, tokens; };

/* Random blocks whose weights are finite and of moderate size, in a block that ends at a guard
 * page. */
static char *weights(struct check_row *row, const struct linear_case *c, float *sample) {
    size_t blocks = (size_t)c->rows * c->cols / c->quant->block;
    char *w = check_bytes(row, blocks * c->quant->bytes);
    for (size_t b = 0; b < blocks; b++)
        for (bool good = false; !good;) {
            char *block = w + b * c->quant->bytes;
            c->quant->decode(block, sample, 1);
            good = true;
            for (uint32_t i = 0; i < c->quant->block; i++) good = good && fabsf(sample[i]) < 50;
            for (uint32_t i = 0; !good && i < c->quant->bytes; i++)
                block[i] = (char)check_random(row);
        }
    return w;
}

/* The rows as `k` takes them for this format. */
static const void *rows_for(struct check_row *row, const struct linear_case *c,
                            const struct kernels *k, const float *x) {
    if (!k->act_quantize || !kernels_linear_takes_act(c->quant)) return x;
    char *act = check_scratch(row, c->tokens * act_row_bytes(c->cols));
    for (uint32_t t = 0; t < c->tokens; t++)
        k->act_quantize(x + (size_t)t * c->cols, c->cols, act + t * act_row_bytes(c->cols));
    return act;
}

/* Scalar against ref. The error is measured against the terms of each sum, not against the sum,
 * which may cancel. Rounding activations to 8 bits takes 1.6e-5 of their
 * power on average; the bound is for one row of one token. */
static void compare(struct check_row *row, const struct linear_case *c,
                    const struct linear_job *job, const float *x, const float *got) {
    double error = 0, power = 0, limit = kernels_linear_takes_act(c->quant) ? 4e-4 : 1e-12;
    float *w = check_output(row, c->cols);
    for (uint32_t r = 0; r < c->rows; r++) {
        c->quant->decode((const char *)job->w + r * job->row_bytes, w, c->cols / c->quant->block);
        for (uint32_t t = 0; t < c->tokens; t++) {
            double e = (double)got[t * job->y_stride + r] - job->y[t * job->y_stride + r];
            error += e * e;
            for (uint32_t k = 0; k < c->cols; k++) {
                double term = (double)w[k] * x[(size_t)t * c->cols + k];
                power += term * term;
            }
        }
    }
    if (!(error <= limit * power))
        check_fail(row, "error %.3g of the terms' power, at most %.3g", error / power, limit);
}

static void run(struct check_row *row, const void *arg) {
    const struct linear_case *c = arg;
    size_t n = (size_t)c->rows * c->tokens;
    float sample[256];
    float *x = check_scratch(row, (size_t)c->tokens * c->cols * sizeof *x);
    for (size_t i = 0; i < (size_t)c->tokens * c->cols; i++) x[i] = check_uniform(row, -2, 2);
    struct linear_job job = {.quant = c->quant,
                             .w = weights(row, c, sample),
                             .row_bytes = quant_row_bytes(c->quant, c->cols),
                             .cols = c->cols,
                             .tokens = c->tokens,
                             .x = x,
                             .bias = check_input(row, c->rows, -1, 1),
                             .y_stride = c->rows,
                             .scratch = check_scratch(row, kernels_linear_scratch(c->cols))};
    float *got = job.y = check_output(row, n), *want = check_output(row, n);
    double bytes = (double)job.row_bytes * c->rows, flops = 2.0 * (double)n * c->cols;
    const struct kernels *ours = kernels_table(c->isa), *other = kernels_table(CPU_SCALAR);
    if (c->isa == CPU_SCALAR) other = kernels_ref();
    enum quant_index index = quant_index_of(c->quant);
    job.x = rows_for(row, c, ours, x);
    while (check_again(row, bytes, flops)) ours->linear[index](&job, 0, c->rows);
    job.x = rows_for(row, c, other, x);
    job.y = want;
    other->linear[index](&job, 0, c->rows);
    if (c->isa != CPU_SCALAR) check_equal(row, got, want, n);
    else compare(row, c, &job, x, got);
}

void check_linear(struct check *check) {
    static const uint32_t shape[][3] = {/* rows, blocks of a row, tokens */
                                        {1, 1, 1},  {16, 3, 1}, {17, 2, 2}, {33, 1, 7},
                                        {48, 2, 17}, {5, 5, 64},
                                        {2048, 8, 1}, {2048, 8, 64}}; /* for --bench */
    size_t shapes = sizeof shape / sizeof shape[0] - (check_bench(check) ? 0 : 2);
    for (int q = 0; q < QUANT_COUNT; q++)
        CHECK_ISAS(check, isa)
            for (size_t i = 0; i < shapes; i++) {
                const struct quant *quant = quant_list[q];
                uint32_t step = quant->block < 32 ? 32 : quant->block;
                struct linear_case c = {quant, isa, shape[i][0], shape[i][1] * step, shape[i][2]};
                check_run(check, run, &c, "linear_%s.%s.%ux%u_t%u", quant->name, cpu_isa_name(isa),
                          c.rows, c.cols, c.tokens);
            }
}
