/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_tile.c: the loops around an ISA's unpack and mul; see linear_tile.h. y is the accumulator
 * between tiles of columns.
 *
 * If all columns of the tokens fit the caches, weights are read in the order of memory; else
 * columns are the outer loop and a block of tokens stays in the second-level cache. */
#include "kernels/body/linear_tile.h"

#include <assert.h>
#include <string.h>

struct scratch {
    struct linear_tile tile;
    alignas(64) float y[TILE_TOKENS][TILE_ROWS];
    alignas(64) uint8_t w[TILE_ROWS][TILE_MAX_ROW];
};

static uint32_t tiles_of(uint32_t cols) { return (cols + TILE_COLS - 1) / TILE_COLS; }

_Static_assert(sizeof(struct scratch) <= LINEAR_SCRATCH, "fits");
size_t kernels_linear_scratch(void) { return LINEAR_SCRATCH; }

size_t act_packed_bytes(uint32_t cols, uint32_t tokens) {
    size_t tiled = (size_t)tiles_of(cols) * tokens * sizeof(struct tile_act);
    size_t rows = act_row_bytes(cols) * tokens;
    return tiled > rows ? tiled : rows;
}

struct tile_rows {
    const uint8_t *w;
    size_t stride;
};

/* Rows [r, r + rows) and columns [k, k + cols) as a whole tile: missing rows repeat the last. */
static struct tile_rows whole_tile(const struct linear_job *job, uint32_t r, uint32_t rows,
                                   uint32_t k, uint32_t cols, struct scratch *scratch) {
    const struct quant *quant = job->quant;
    size_t stride = job->row_bytes, bytes = cols / quant->block * quant->bytes;
    const uint8_t *w = (const uint8_t *)job->w + r * stride + k / quant->block * quant->bytes;
    if (rows == TILE_ROWS) return (struct tile_rows){w, stride};
    assert(bytes <= TILE_MAX_ROW);
    for (uint32_t i = 0; i < TILE_ROWS; i++)
        memcpy(scratch->w[i], w + (i < rows ? i : rows - 1) * stride, bytes);
    return (struct tile_rows){scratch->w[0], TILE_MAX_ROW};
}

static void copy_rows(float *to, size_t to_stride, const float *from, size_t from_stride,
                      uint32_t tokens, uint32_t rows) {
    for (uint32_t t = 0; t < tokens; t++)
        memcpy(to + t * to_stride, from + t * from_stride, rows * sizeof(float));
}

/* A block of tokens of a job, with what the loops below share. */
struct work {
    struct linear_job job;
    tile_unpack *unpack;
    tile_arrange *arrange; /* or NULL */
    tile_mul *mul;
    tile_gemv *gemv; /* NULL: unpack and mul */
    struct scratch *scratch;
    const struct tile_act *act;
    uint32_t all_tokens; /* of act, from tile to tile */
    uint32_t row0, row1;
};

static uint32_t cols_at(const struct work *w, uint32_t k) {
    return w->job.cols - k < TILE_COLS ? w->job.cols - k : TILE_COLS;
}

/* Of the block's first token. */
static const struct tile_act *act_at(const struct work *w, uint32_t k) {
    return w->act + (size_t)(k / TILE_COLS) * w->all_tokens;
}

static void multiply_tile(const struct work *w, uint32_t r, uint32_t k) {
    const struct linear_job *job = &w->job;
    const struct quant *quant = job->quant;
    const struct tile_act *act = act_at(w, k);
    struct scratch *scratch = w->scratch;
    uint32_t rows = w->row1 - r < TILE_ROWS ? w->row1 - r : TILE_ROWS, cols = cols_at(w, k);
    struct tile_rows from = whole_tile(job, r, rows, k, cols, scratch);
    bool first = k == 0;
    if (!w->gemv) {
        w->unpack(from.w, from.stride, cols / quant->block, &scratch->tile);
        if (w->arrange) w->arrange(&scratch->tile, quant, cols);
    }
    for (uint32_t t = 0; t < job->tokens; t += TILE_TOKENS) {
        uint32_t tokens = job->tokens - t < TILE_TOKENS ? job->tokens - t : TILE_TOKENS;
        bool direct = rows == TILE_ROWS;
        float *y = job->y + t * job->y_stride + r, *to = direct ? y : scratch->y[0];
        size_t stride = direct ? job->y_stride : TILE_ROWS;
        if (!direct && !first) copy_rows(to, stride, y, job->y_stride, tokens, rows);
        if (w->gemv)
            w->gemv(from.w, from.stride, cols / quant->block, act + t, first, to);
        else
            w->mul(&scratch->tile, act + t, cols / quant->sub, tokens, first, to, stride);
        if (!direct) copy_rows(y, job->y_stride, to, stride, tokens, rows);
    }
}

static void multiply(const struct work *w) {
    const struct linear_job *job = &w->job;
    if (job->tokens <= TILE_TOKENS)
        for (uint32_t r = w->row0; r < w->row1; r += TILE_ROWS)
            for (uint32_t k = 0; k < job->cols; k += TILE_COLS) multiply_tile(w, r, k);
    else
        for (uint32_t k = 0; k < job->cols; k += TILE_COLS)
            for (uint32_t r = w->row0; r < w->row1; r += TILE_ROWS) multiply_tile(w, r, k);
    for (uint32_t t = 0; job->bias && t < job->tokens; t++)
        for (uint32_t r = w->row0; r < w->row1; r++) job->y[t * job->y_stride + r] += job->bias[r];
}

void linear_tiles(const struct linear_job *job, uint32_t row0, uint32_t row1,
                  const struct tile_isa *isa) {
    enum quant_index index = quant_index_of(job->quant);
    struct work w = {.job = *job,
                     .unpack = isa->unpack[index],
                     .arrange = isa->arrange,
                     .mul = isa->choose_mul(job->quant),
                     .gemv = job->tokens == 1 ? isa->gemv[index] : NULL,
                     .scratch = job->scratch,
                     .all_tokens = job->tokens,
                     .row0 = row0,
                     .row1 = row1};
    assert(w.unpack);
    for (uint32_t t = 0; t < job->tokens; t += TILE_BLOCK_TOKENS) {
        w.act = (const struct tile_act *)job->x + t;
        w.job.tokens = job->tokens - t < TILE_BLOCK_TOKENS ? job->tokens - t : TILE_BLOCK_TOKENS;
        w.job.y = job->y + t * job->y_stride;
        multiply(&w);
    }
}
