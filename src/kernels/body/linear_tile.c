/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_tile.c: the loops around an ISA's unpack and mul; see linear_tile.h. y is the accumulator
 * between tiles of columns. Few tokens go through the weights in the order of memory; many tokens
 * keep a block of columns of all activations in the second-level cache instead. */
#include "kernels/body/linear_tile.h"

#include <assert.h>
#include <string.h>

#include "kernels/body/act.h"

enum { FEW_TOKENS = 8 };

struct scratch {
    struct linear_tile tile;
    struct tile_act act[TILE_TOKENS];
    alignas(64) float y[TILE_TOKENS][TILE_ROWS];
    alignas(64) uint8_t w[TILE_ROWS][TILE_MAX_ROW];
};

size_t kernels_linear_scratch(uint32_t max_cols) {
    (void)max_cols;
    return sizeof(struct scratch);
}

static void unpack_plain(const struct quant *quant, const uint8_t *w, size_t stride,
                         uint32_t blocks, struct linear_tile *tile) {
    uint32_t subs = quant->block / quant->sub;
    for (uint32_t r = 0; r < TILE_ROWS; r++) {
        for (uint32_t b = 0; b < blocks; b++) {
            uint8_t code[256];
            float scale[16], min[16];
            quant->unpack(w + r * stride + b * quant->bytes, code, scale, min);
            for (uint32_t k = 0; k < quant->block; k += 4)
                memcpy(tile->code[(b * quant->block + k) / 4][r], code + k, 4);
            for (uint32_t s = 0; s < subs; s++) {
                tile->scale[b * subs + s][r] = scale[s];
                tile->min[b * subs + s][r] = min[s];
            }
        }
    }
}

/* Rows [r, r + rows) and columns [k, k + cols) to a whole tile: missing rows repeat the last. */
static void unpack_tile(const struct linear_job *job, uint32_t r, uint32_t rows, uint32_t k,
                        uint32_t cols, const struct tile_isa *isa, struct scratch *scratch) {
    const struct quant *quant = job->quant;
    size_t stride = job->row_bytes, bytes = cols / quant->block * quant->bytes;
    const uint8_t *w = (const uint8_t *)job->w + r * stride + k / quant->block * quant->bytes;
    if (rows < TILE_ROWS) {
        assert(bytes <= TILE_MAX_ROW);
        for (uint32_t i = 0; i < TILE_ROWS; i++)
            memcpy(scratch->w[i], w + (i < rows ? i : rows - 1) * stride, bytes);
        w = scratch->w[0];
        stride = TILE_MAX_ROW;
    }
    tile_unpack *unpack = isa->unpack[quant_index_of(quant)];
    if (unpack)
        unpack(w, stride, cols / quant->block, &scratch->tile);
    else
        unpack_plain(quant, w, stride, cols / quant->block, &scratch->tile);
}

/* What mul needs of a token's columns [k, k + cols). */
static void prepare(const struct linear_job *job, uint32_t token, uint32_t k, uint32_t cols,
                    struct tile_act *out) {
    struct act x = act_row(job->x, job->cols, token);
    uint32_t sub = job->quant->sub, subs = cols / sub;
    int32_t offset = job->quant->offset;
    const float *d = x.d + k / ACT_BLOCK;
    const int32_t *sum16 = x.sum16 + k / 16;
    out->q = x.q + k;
    if (sub == 32) {
        for (uint32_t s = 0; s < subs; s++) {
            int32_t sum = sum16[2 * s] + sum16[2 * s + 1];
            out->d[s] = d[s];
            out->start[s] = DOT_BIAS - offset * sum;
            out->sum[s] = -(d[s] * (float)sum);
        }
    } else {
        for (uint32_t s = 0; s < subs; s++) {
            out->d[s] = d[s / 2];
            out->start[s] = DOT_BIAS - offset * sum16[s];
            out->sum[s] = -(d[s / 2] * (float)sum16[s]);
        }
    }
    for (uint32_t s = 0; s < subs; s++) out->bias[s] = -DOT_BIAS_VALUE * out->d[s];
}

static void copy_rows(float *to, size_t to_stride, const float *from, size_t from_stride,
                      uint32_t tokens, uint32_t rows) {
    for (uint32_t t = 0; t < tokens; t++)
        memcpy(to + t * to_stride, from + t * from_stride, rows * sizeof(float));
}

static void multiply_tile(const struct linear_job *job, uint32_t r, uint32_t rows, uint32_t k,
                          uint32_t cols, const struct tile_isa *isa, struct scratch *scratch) {
    const struct quant *quant = job->quant;
    tile_mul *mul = isa->mul[quant->sub == 32][quant->has_min];
    size_t stride = job->y_stride;
    for (uint32_t t = 0; t < job->tokens; t += TILE_TOKENS) {
        uint32_t tokens = job->tokens - t < TILE_TOKENS ? job->tokens - t : TILE_TOKENS;
        float *y = job->y + t * stride + r;
        for (uint32_t i = 0; i < tokens; i++) {
            prepare(job, t + i, k, cols, &scratch->act[i]);
            if (k == 0) memset(y + i * stride, 0, rows * sizeof(float));
        }
        if (rows == TILE_ROWS) {
            mul(&scratch->tile, scratch->act, cols / quant->sub, tokens, y, stride);
        } else {
            copy_rows(scratch->y[0], TILE_ROWS, y, stride, tokens, rows);
            mul(&scratch->tile, scratch->act, cols / quant->sub, tokens, scratch->y[0], TILE_ROWS);
            copy_rows(y, stride, scratch->y[0], TILE_ROWS, tokens, rows);
        }
        if (k + cols == job->cols && job->bias)
            for (uint32_t i = 0; i < tokens; i++)
                for (uint32_t j = 0; j < rows; j++) y[i * stride + j] += job->bias[r + j];
    }
}

static void step(const struct linear_job *job, uint32_t r, uint32_t row1, uint32_t k,
                 const struct tile_isa *isa) {
    uint32_t rows = row1 - r < TILE_ROWS ? row1 - r : TILE_ROWS;
    uint32_t cols = job->cols - k < TILE_COLS ? job->cols - k : TILE_COLS;
    unpack_tile(job, r, rows, k, cols, isa, job->scratch);
    multiply_tile(job, r, rows, k, cols, isa, job->scratch);
}

void linear_tiles(const struct linear_job *job, uint32_t row0, uint32_t row1,
                  const struct tile_isa *isa) {
    if (job->tokens <= FEW_TOKENS) {
        for (uint32_t r = row0; r < row1; r += TILE_ROWS)
            for (uint32_t k = 0; k < job->cols; k += TILE_COLS) step(job, r, row1, k, isa);
    } else {
        for (uint32_t k = 0; k < job->cols; k += TILE_COLS)
            for (uint32_t r = row0; r < row1; r += TILE_ROWS) step(job, r, row1, k, isa);
    }
}
