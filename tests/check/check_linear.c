/* SPDX-License-Identifier: Apache-2.0
 *
 * check_linear.c: rows of activations in 8 bits, and matrix products of every format: scalar
 * against the definition, each ISA against scalar bit for bit, for sizes around every block of the
 * kernels, any range of rows, weights of any bytes and activations that are not finite. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"
#include "packed_floats.h"
#include "tiny.h"

/* MODERATE weights are finite and small enough that sums are, too. */
enum weights { MODERATE, ANY_BYTES, ALL_ZERO, ALL_ONE, WEIGHTS };

struct linear_case {
    const struct quant *quant;
    enum cpu_isa isa;
    uint32_t rows, cols, tokens;
    uint32_t row0, row1;
    enum weights weights;
    bool bias, odd_x;
};

/* Blocks that end at a guard page. */
static char *weights(struct check_row *row, const struct linear_case *c) {
    size_t blocks = (size_t)c->rows * c->cols / c->quant->block;
    if (c->weights == MODERATE) return tiny_blocks(row, c->quant, blocks, 0, 50);
    char *w = check_bytes(row, blocks * c->quant->bytes);
    if (c->weights == ALL_ZERO) memset(w, 0, blocks * c->quant->bytes);
    if (c->weights == ALL_ONE) memset(w, 0xff, blocks * c->quant->bytes);
    return w;
}

static float *activations(struct check_row *row, size_t n, bool odd) {
    static const float value[] = {INFINITY, -INFINITY, NAN, 0x1p100f, 1e38f, 0x1.fp99f, 0x1p-100f,
                                  0x1.fp-101f, 1e-44f, 0, -0.0f};
    float *x = check_input(row, n, -2, 2);
    for (size_t i = 0; odd && i < n; i += 1 + check_below(row, 60)) {
        x[i] = value[check_below(row, sizeof value / sizeof value[0])];
        if (i + 64 < n && check_below(row, 4) == 0) memset(x + i, 0, 64 * sizeof *x);
    }
    return x;
}

static const void *pack_floats(struct check_row *row, const struct linear_case *c,
                                 const struct kernels *k, const float *x) {
    char *packed = check_bytes(row, float_packed_bytes(c->cols, c->tokens));
    for (uint32_t t = 0; t < c->tokens; t += FLOAT_GROUP) {
        const float *from[FLOAT_GROUP];
        uint32_t n = c->tokens - t < FLOAT_GROUP ? c->tokens - t : FLOAT_GROUP;
        for (uint32_t i = 0; i < n; i++) from[i] = x + (size_t)(t + i) * c->cols;
        k->float_pack(c->quant, from, n, c->cols, packed + float_packed_bytes(c->cols, t));
    }
    return packed;
}

/* The rows as `k` takes them for this format, before a guard page. */
static const void *rows_for(struct check_row *row, const struct linear_case *c,
                            const struct kernels *k, const float *x) {
    if (kernels_packs_floats(k, c->quant)) return pack_floats(row, c, k, x);
    if (!k->act_quantize || !kernels_linear_takes_act(c->quant)) return x;
    size_t bytes = act_row_bytes(c->cols);
    char *act = check_bytes(row, c->tokens * bytes);
    for (uint32_t t = 0; t < c->tokens; t++)
        k->act_quantize(x + (size_t)t * c->cols, c->cols, act + t * bytes);
    if (!k->act_pack) return act;
    char *packed = check_bytes(row, act_packed_bytes(c->cols, c->tokens));
    for (uint32_t t = c->tokens; t-- > 0;) {
        struct act a = act_row(act, c->cols, t);
        k->act_pack(c->quant, &a, c->cols, t, c->tokens, packed);
    }
    return packed;
}

/* Scalar against ref. The error is measured against the terms of each sum, not against the sum,
 * which may cancel. Rounding activations to 8 bits takes 1.6e-5 of their power on average; the
 * bound is for one row of one token. A bias far above all terms leaves the last bit of its own. */
static void compare(struct check_row *row, const struct linear_case *c,
                    const struct linear_job *job, const float *x, const float *got) {
    double error = 0, power = 0, last_bits = 0;
    double limit = kernels_linear_takes_act(c->quant) ? 4e-4 : 1e-12;
    float *w = check_output(row, c->cols);
    for (uint32_t r = c->row0; r < c->row1; r++) {
        c->quant->decode((const char *)job->w + r * job->row_bytes, w, c->cols / c->quant->block);
        for (uint32_t t = 0; t < c->tokens; t++) {
            double e = (double)got[t * job->y_stride + r] - job->y[t * job->y_stride + r];
            double last_bit = job->bias ? 0x1p-23 * (double)job->bias[r] : 0;
            error += e * e;
            last_bits += last_bit * last_bit;
            for (uint32_t k = 0; k < c->cols; k++) {
                double term = (double)w[k] * x[(size_t)t * c->cols + k];
                power += term * term;
            }
        }
    }
    if (!(error <= limit * power + last_bits))
        check_fail(row, "error %.3g of the terms' power, at most %.3g", error / power, limit);
}

static void product(struct check_row *row, const void *arg) {
    const struct linear_case *c = arg;
    size_t n = (size_t)c->rows * c->tokens;
    float *x = activations(row, (size_t)c->tokens * c->cols, c->odd_x);
    struct linear_job job = {.quant = c->quant,
                             .w = weights(row, c),
                             .row_bytes = quant_row_bytes(c->quant, c->cols),
                             .cols = c->cols,
                             .tokens = c->tokens,
                             .bias = c->bias ? check_input(row, c->rows, -1, 1) : NULL,
                             .y_stride = c->rows,
                             .scratch = check_scratch(row, kernels_linear_scratch())};
    float *got = job.y = check_output(row, n), *want = check_output(row, n);
    double bytes = (double)job.row_bytes * c->rows, flops = 2.0 * (double)n * c->cols;
    const struct kernels *ours = kernels_table(c->isa), *other = kernels_table(CPU_SCALAR);
    if (c->isa == CPU_SCALAR) other = kernels_ref();
    enum quant_index index = quant_index_of(c->quant);
    job.x = rows_for(row, c, ours, x);
    while (check_again(row, bytes, flops)) ours->linear[index](&job, c->row0, c->row1);
    job.x = rows_for(row, c, other, x);
    job.y = want;
    if (kernels_packs_floats(ours, c->quant)) packed_floats_linear(&job, x, c->row0, c->row1);
    else other->linear[index](&job, c->row0, c->row1);
    if (c->isa != CPU_SCALAR) check_equal(row, got, want, n); /* NaN outside of the range, too */
    else compare(row, c, &job, x, got);
}

static void sizes(struct check *check, const struct quant *quant, enum cpu_isa isa) {
    static const uint32_t shape[][3] = {/* rows, blocks of a row, tokens */
                                        {1, 1, 1},   {16, 3, 1},  {17, 2, 2},  {33, 1, 7},
                                        {48, 2, 17}, {5, 5, 64},  {35, 3, 5},  {64, 17, 4},
                                        {7, 1, 513}, {70, 5, 8},  {32, 19, 9}, {33, 2, 257},
                                        {70, 13, 101},
                                        {2048, 8, 1}, {2048, 8, 64}}; /* for --bench */
    size_t shapes = sizeof shape / sizeof shape[0] - (check_bench(check) ? 0 : 2);
    uint32_t step = quant->block < 32 ? 32 : quant->block;
    for (size_t i = 0; i < shapes; i++) {
        uint32_t rows = shape[i][0];
        struct linear_case c = {quant, isa, rows, shape[i][1] * step, shape[i][2], 0, rows,
                                MODERATE, i % 2 == 0, false};
        check_run(check, product, &c, "linear_%s.%s.%ux%u_t%u", quant->name, cpu_isa_name(isa),
                  c.rows, c.cols, c.tokens);
    }
}

/* Against scalar alone: what is not finite has no error to measure. */
static void oddities(struct check *check, const struct quant *quant, enum cpu_isa isa) {
    static const uint32_t range[][3] = {{1, 0, 1},    {33, 1, 33},  {40, 7, 8},
                                        {70, 31, 66}, {70, 16, 64}, {64, 5, 39}};
    uint32_t step = quant->block < 32 ? 97 : quant->block;
    for (uint32_t i = 0; i < 4 * (uint32_t)(sizeof range / sizeof range[0]); i++) {
        const uint32_t *rows = range[i / 4];
        enum weights kind = (enum weights)((i + i / 4) % WEIGHTS);
        struct linear_case c = {quant, isa, rows[0], (1 + i % 5) * step, 1 + i % 11, rows[1],
                                rows[2], kind, i % 3 == 0, i % 2 == 0};
        check_run(check, product, &c, "linear_odd_%s.%s.%u", quant->name, cpu_isa_name(isa), i);
    }
}

/* ---- rows of activations ---- */

struct act_case { enum cpu_isa isa; uint32_t cols; bool odd; };

static void act_holds(struct check_row *row, const float *x, const struct act *a, uint32_t cols) {
    for (uint32_t k = 0; k < cols; k += 16) {
        double amax = 0, worst = 0, step = (double)a->d[k / 32];
        int32_t sum = 0;
        for (uint32_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
            amax = isnan(x[i]) ? (double)INFINITY : fmax(amax, fabs((double)x[i]));
        for (uint32_t i = k; i < k + 16; i++) {
            sum += a->q[i];
            worst = fmax(worst, fabs((double)a->q[i] * step - (double)x[i]));
        }
        CHECK_THAT(row, sum == a->sum16[k / 16]);
        if (amax >= 0x1p100) CHECK_THAT(row, isnan(step));
        else CHECK_THAT(row, worst <= (amax < 0x1p-100 ? amax : 0.501 * amax / 127));
    }
}

static void act_rows(struct check_row *row, const void *arg) {
    const struct act_case *c = arg;
    float *x = activations(row, c->cols, c->odd);
    char *got = check_scratch(row, act_row_bytes(c->cols));
    char *want = check_scratch(row, act_row_bytes(c->cols));
    while (check_again(row, 5.0 * c->cols, c->cols))
        kernels_table(c->isa)->act_quantize(x, c->cols, got);
    kernels_table(CPU_SCALAR)->act_quantize(x, c->cols, want);
    struct act a = act_row(got, c->cols, 0), b = act_row(want, c->cols, 0);
    act_holds(row, x, &a, c->cols);
    check_equal(row, a.d, b.d, c->cols / 32);
    CHECK_THAT(row, memcmp(a.q, b.q, c->cols) == 0);
    CHECK_THAT(row, memcmp(a.sum16, b.sum16, c->cols / 16 * sizeof *a.sum16) == 0);
}

void check_linear(struct check *check) {
    static const uint32_t blocks[] = {1, 2, 3, 7, 128, 592};
    CHECK_ISAS(check, isa)
        for (uint32_t i = 0; i < 2 * sizeof blocks / sizeof blocks[0]; i++) {
            struct act_case c = {isa, blocks[i / 2] * 32, i % 2 != 0};
            check_run(check, act_rows, &c, "act_quantize.%s.n%u%s", cpu_isa_name(isa), c.cols,
                      c.odd ? "_odd" : "");
        }
    for (int q = 0; q < QUANT_COUNT; q++)
        CHECK_ISAS(check, isa) {
            sizes(check, quant_list[q], isa);
            if (isa != CPU_SCALAR) oddities(check, quant_list[q], isa);
        }
}
