/* SPDX-License-Identifier: Apache-2.0
 *
 * few.h: up to 16 tokens. Two groups of rows at a time are read once, as they lie in memory: BF16
 * weights are tiles there, F16 are put together one block of columns ahead of the tiles that are
 * multiplied, so that both go on at once. */
#ifndef KERNELS_AMX_FEW_H
#define KERNELS_AMX_FEW_H

#include "kernels/amx/tiles.h"
#include "kernels/amx/weights.h"

enum { AHEAD = 512 }; /* bytes of a row that are on their way */

/* Rows of a job, from one that begins two groups. */
struct few {
    const char *w;
    size_t stride;
    uint32_t rows, cols;
    char (*ring)[2][WEIGHT_PIECES][TILE]; /* [block % 2][group] */
};

INLINE void fetch(const struct few *f, uint32_t k, const int groups) {
    const char *next = f->w + 2 * (size_t)k + AHEAD;
    if (k + AHEAD / 2 >= f->cols) next += 2 * GROUP * f->stride - 2 * (size_t)f->cols;
    for (uint32_t i = 0; i < (uint32_t)groups * GROUP; i++)
        __builtin_prefetch(next + i * f->stride);
}

/* Of one group of the rows. */
INLINE void put_block(const struct few *f, uint32_t k, uint32_t group, const int pieces) {
    const char *w = f->w + group * GROUP * f->stride + 2 * (size_t)k;
    put_tile((const uint8_t *)w, f->stride, at_most(f->rows - group * GROUP, GROUP),
             at_most(f->cols - k, BLOCK), f->ring[k / BLOCK % 2][group][0], pieces);
}

/* The tiles of the block of columns at k. */
INLINE struct weights few_weights(const struct few *f, uint32_t k, bool in_ring) {
    if (in_ring)
        return (struct weights){.at = f->ring[k / BLOCK % 2][0][0],
                                .group = sizeof f->ring[0][0],
                                .stride = 2 * BLOCK};
    return (struct weights){.at = f->w + 2 * (size_t)k,
                            .group = GROUP * f->stride,
                            .stride = f->stride};
}

INLINE void multiply_few(const struct few *f, struct inputs x, float *sum, const int pieces,
                         const int groups) {
    if (pieces == 2 || f->cols < BLOCK)
        for (uint32_t g = 0; g < (uint32_t)groups; g++) put_block(f, 0, g, pieces);
    _tile_zero(0);
    _tile_zero(2);
    for (uint32_t k = 0; k < f->cols; k += BLOCK, x.at += PIECES * x.tile) {
        struct weights w = few_weights(f, k, pieces == 2 || f->cols - k < BLOCK);
        bool put = k + BLOCK < f->cols && (pieces == 2 || f->cols - k < 2 * BLOCK);
        fetch(f, k, groups);
        if (put) put_block(f, k + BLOCK, 0, pieces);
        _tile_loadd(6, x.at + x.tile, x.tile / 16);
        _tile_loadd(7, x.at, x.tile / 16);
        _tile_loadd(4, w.at, w.stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(0, 4, 7);
        if (pieces == 2) _tile_loadd(4, w.at + TILE, w.stride);
        if (pieces == 2) _tile_dpbf16ps(0, 4, 7);
        if (groups == 1) continue;
        if (put) put_block(f, k + BLOCK, 1, pieces);
        _tile_loadd(5, w.at + w.group, w.stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(2, 5, 7);
        if (pieces == 2) _tile_loadd(5, w.at + w.group + TILE, w.stride);
        if (pieces == 2) _tile_dpbf16ps(2, 5, 7);
    }
    _tile_stored(0, sum, 64);
    if (groups == 2) _tile_stored(2, sum + GROUP * GROUP, 64);
}

#endif
