/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_float.h: products with F32, F16 and BF16 weights, for the ISA whose lanes.h is included:
 * 16 sums per output, lane l over the columns l, l+16, ... (kernels.h), so lanes are columns here.
 *
 * Few tokens: FLOAT_ROWS rows straight from memory. Many: 384 columns at a time, 16 rows are
 * converted once for 96 tokens and stay in the first-level cache beside the tokens of a register
 * block, which are read where they lie; the sums of 64 rows rest in the scratch, in the second-
 * level cache, between blocks of columns. Each sum runs in the same order either way. */
#ifndef KERNELS_BODY_LINEAR_FLOAT_H
#define KERNELS_BODY_LINEAR_FLOAT_H

#include <stdalign.h>

#include "kernels/body/linear_tile.h"

enum {
    FLOAT_BLOCK_ROWS = 64,
    FLOAT_BLOCK_TOKENS = 96 / FLOAT_TOKENS * FLOAT_TOKENS,
    FLOAT_BLOCK_COLS = 384,
    FLOAT_CONVERTED = 16, /* rows */
    FLOAT_FEW = 4
};

struct float_scratch {
    alignas(64) float w[FLOAT_CONVERTED][FLOAT_BLOCK_COLS];
    alignas(64) float x[FLOAT_TOKENS][FLOAT_BLOCK_COLS];
    alignas(64) float sum[FLOAT_BLOCK_ROWS][FLOAT_BLOCK_TOKENS][16];
};

_Static_assert(sizeof(struct float_scratch) <= LINEAR_SCRATCH, "fits");

/* 16 weights at p as floats. */
typedef struct f16x float_load(const uint8_t *p);
INLINE struct f16x load_f32(const uint8_t *p) { return f16x_load((const float *)p); }

/* The last n < 16 of a row, continued with zeros. */
INLINE struct f16x load_part(float_load *load, uint32_t size, const uint8_t *p, uint32_t n) {
    uint8_t whole[64] = {0};
    memcpy(whole, p, n * size);
    return load(whole);
}

/* ---- few tokens ---- */

INLINE void direct(const struct linear_job *job, uint32_t r, float_load *load, uint32_t size,
                   const int rows, const int tokens) {
    const uint8_t *w = (const uint8_t *)job->w + r * job->row_bytes;
    const float *x = job->x;
    uint32_t whole = job->cols / 16 * 16, rest = job->cols - whole;
    struct f16x sum[FLOAT_ROWS][FLOAT_FEW];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int t = 0; t < tokens; t++) sum[i][t] = f16x_zero();
    for (uint32_t k = 0; k < whole; k += 16) {
        struct f16x b[FLOAT_FEW];
        UNROLL for (int t = 0; t < tokens; t++) b[t] = f16x_load(x + (size_t)t * job->cols + k);
        UNROLL for (int i = 0; i < rows; i++) {
            struct f16x a = load(w + i * job->row_bytes + k * size);
            UNROLL for (int t = 0; t < tokens; t++) sum[i][t] = f16x_fma(b[t], a, sum[i][t]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int t = 0; t < tokens; t++) {
            if (rest) {
                struct f16x a = load_part(load, size, w + i * job->row_bytes + whole * size, rest);
                const float *from = x + (size_t)t * job->cols + whole;
                struct f16x b = load_part(load_f32, sizeof(float), (const uint8_t *)from, rest);
                sum[i][t] = f16x_fma(b, a, sum[i][t]);
            }
            job->y[t * job->y_stride + r + i] = f16x_sum(sum[i][t]);
        }
    }
}

INLINE void few_tokens(const struct linear_job *job, uint32_t row0, uint32_t row1, float_load *load,
                       uint32_t size, const int tokens) {
    uint32_t r = row0;
    for (; r + FLOAT_ROWS <= row1; r += FLOAT_ROWS) direct(job, r, load, size, FLOAT_ROWS, tokens);
    for (; r < row1; r++) direct(job, r, load, size, 1, tokens);
}

/* ---- many tokens ---- */

/* `cols` columns of a row to floats, up to a multiple of 16 with zeros. */
INLINE void convert(const uint8_t *from, uint32_t cols, float_load *load, uint32_t size,
                    float *to) {
    uint32_t whole = cols / 16 * 16;
    for (uint32_t k = 0; k < whole; k += 16) f16x_store(to + k, load(from + k * size));
    if (cols > whole)
        f16x_store(to + whole, load_part(load, size, from + whole * size, cols - whole));
}

/* FLOAT_ROWS converted rows from i0 on times FLOAT_TOKENS tokens: continues, or begins, the sums of
 * the row r and the token t of the block and those after them. */
INLINE void block_sums(struct float_scratch *s, uint32_t r, uint32_t i0, uint32_t t,
                       const float *const x[FLOAT_TOKENS], uint32_t cols, bool first) {
    struct f16x sum[FLOAT_ROWS][FLOAT_TOKENS];
    UNROLL for (int i = 0; i < FLOAT_ROWS; i++)
        UNROLL for (int j = 0; j < FLOAT_TOKENS; j++) sum[i][j] =
            first ? f16x_zero() : f16x_load(s->sum[r + i][t + j]);
    for (uint32_t k = 0; k < cols; k += 16) {
        struct f16x a[FLOAT_ROWS];
        UNROLL for (int i = 0; i < FLOAT_ROWS; i++) a[i] = f16x_load(&s->w[i0 + i][k]);
        UNROLL for (int j = 0; j < FLOAT_TOKENS; j++) {
            struct f16x b = f16x_load(x[j] + k);
            UNROLL for (int i = 0; i < FLOAT_ROWS; i++) sum[i][j] = f16x_fma(b, a[i], sum[i][j]);
        }
    }
    UNROLL for (int i = 0; i < FLOAT_ROWS; i++)
        UNROLL for (int j = 0; j < FLOAT_TOKENS; j++) f16x_store(s->sum[r + i][t + j], sum[i][j]);
}

/* Columns [k, k + cols) of FLOAT_TOKENS tokens from t on, the last of which is `end` - 1 and fills
 * up; a part of 16 columns is completed in the scratch. */
INLINE void find_tokens(const struct linear_job *job, uint32_t t, uint32_t end, uint32_t k,
                        uint32_t cols, const float *x[FLOAT_TOKENS]) {
    struct float_scratch *s = job->scratch;
    for (uint32_t j = 0; j < FLOAT_TOKENS; j++) {
        uint32_t token = t + j < end ? t + j : end - 1;
        x[j] = (const float *)job->x + (size_t)token * job->cols + k;
        if (cols % 16 == 0) continue;
        convert((const uint8_t *)x[j], cols, load_f32, sizeof(float), s->x[j]);
        x[j] = s->x[j];
    }
}

/* Each sum of the block's next 16 rows, or fewer, to y. */
INLINE void put_sums(const float *sum, uint32_t rows, float *y) {
    struct f16x sums = f16x_sums(sum, FLOAT_BLOCK_TOKENS * 16);
    float part[16];
    if (rows >= 16) {
        f16x_store(y, sums);
        return;
    }
    f16x_store(part, sums);
    memcpy(y, part, rows * sizeof *y);
}

/* Rows from r on, of `rows`, and tokens from t on, of `tokens`; those that fill up a register block
 * repeat the last. */
INLINE void block(const struct linear_job *job, uint32_t r, uint32_t rows, uint32_t t,
                  uint32_t tokens, float_load *load, uint32_t size) {
    struct float_scratch *s = job->scratch;
    for (uint32_t k = 0; k < job->cols; k += FLOAT_BLOCK_COLS) {
        uint32_t cols = job->cols - k < FLOAT_BLOCK_COLS ? job->cols - k : FLOAT_BLOCK_COLS;
        uint32_t padded = (cols + 15) / 16 * 16;
        for (uint32_t i0 = 0; i0 < rows; i0 += FLOAT_CONVERTED) {
            for (uint32_t i = 0; i < FLOAT_CONVERTED; i++) {
                uint32_t row = r + (i0 + i < rows ? i0 + i : rows - 1);
                convert((const uint8_t *)job->w + row * job->row_bytes + k * size, cols, load, size,
                        s->w[i]);
            }
            for (uint32_t j = 0; j < tokens; j += FLOAT_TOKENS) {
                const float *x[FLOAT_TOKENS];
                find_tokens(job, t + j, t + tokens, k, cols, x);
                for (uint32_t i = 0; i < FLOAT_CONVERTED; i += FLOAT_ROWS)
                    block_sums(s, i0 + i, i, j, x, padded, k == 0);
            }
        }
    }
    for (uint32_t j = 0; j < tokens; j++)
        for (uint32_t i = 0; i < rows; i += 16)
            put_sums(s->sum[i][j], rows - i, job->y + (t + j) * job->y_stride + r + i);
}

INLINE void many_tokens(const struct linear_job *job, uint32_t row0, uint32_t row1,
                        float_load *load, uint32_t size) {
    for (uint32_t t = 0; t < job->tokens; t += FLOAT_BLOCK_TOKENS)
        for (uint32_t r = row0; r < row1; r += FLOAT_BLOCK_ROWS)
            block(job, r, row1 - r < FLOAT_BLOCK_ROWS ? row1 - r : FLOAT_BLOCK_ROWS, t,
                  job->tokens - t < FLOAT_BLOCK_TOKENS ? job->tokens - t : FLOAT_BLOCK_TOKENS, load,
                  size);
}

INLINE void float_type(const struct linear_job *job, uint32_t row0, uint32_t row1, float_load *load,
                       uint32_t size) {
    switch (job->tokens) {
    case 1: few_tokens(job, row0, row1, load, size, 1); break;
    case 2: few_tokens(job, row0, row1, load, size, 2); break;
    case 3: few_tokens(job, row0, row1, load, size, 3); break;
    case FLOAT_FEW: few_tokens(job, row0, row1, load, size, FLOAT_FEW); break;
    default: many_tokens(job, row0, row1, load, size); break;
    }
}

static void linear_float(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    switch (quant_index_of(job->quant)) {
    case QUANT_f32: float_type(job, row0, row1, load_f32, 4); break;
    case QUANT_f16: float_type(job, row0, row1, f16x_half, 2); break;
    case QUANT_bf16: float_type(job, row0, row1, f16x_bf16, 2); break;
    default: linear_scalar(job, row0, row1); return; /* adds the bias itself */
    }
    for (uint32_t t = 0; job->bias && t < job->tokens; t++)
        for (uint32_t r = row0; r < row1; r++)
            job->y[t * job->y_stride + r] += job->bias[r];
}

#endif
