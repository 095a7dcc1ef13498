/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_tile.h: integer products of all vector ISAs: unpack a tile of weights into the first-level
 * cache, in the order in which dot-product instructions take them, then multiply it with every
 * token. One token or a thousand take the same path, so their bits are the same; the weights are
 * read once for all tokens. Lanes are rows, so each output's float chain runs in one lane.
 *
 *   code[k / 4][row][k % 4]:  a 32-bit lane holds four weights of one row; its partner is the same
 *                             four activations broadcast to all lanes
 *
 * The integer dot product of a sub-block starts at FLOAT_ONE_HALF - offset * sum(q), which takes
 * the codes' offset away, and leaves the bits of the float 1.5 * 2^23 + dot, as |dot| < 2^22. So
 *   (float)dot * d = fma(that float, d, -1.5 * 2^23 * d)
 * with the same single rounding, 1.5 * 2^23 * d being exact by the making of d (kernels.h). */
#ifndef KERNELS_BODY_LINEAR_TILE_H
#define KERNELS_BODY_LINEAR_TILE_H

#include <stdalign.h>

#include "kernels/body/linear.h"

enum {
    TILE_ROWS = 32,
    TILE_COLS = 512, /* a multiple of every block length */
    TILE_SUBS = TILE_COLS / 16,
    TILE_TOKENS = 16,        /* at most, of one call of tile_mul */
    TILE_BLOCK_TOKENS = 256, /* whose activations of a tile stay in the second-level cache */
    TILE_SIGNED = 128,       /* offset of codes that are int8 values */
    TILE_MAX_ROW = 640,      /* at least the bytes of TILE_COLS weights: 584 in Q8_K */
    DOT_BIAS = 0x4b400000    /* bits of 1.5 * 2^23 */
};
#define DOT_BIAS_VALUE 12582912.0f

struct linear_tile {
    alignas(64) uint8_t code[TILE_COLS / 4][TILE_ROWS][4];
    alignas(64) float scale[TILE_SUBS][TILE_ROWS];
    alignas(64) float min[TILE_SUBS][TILE_ROWS];
};

/* Activations of one token beside a tile; d to sum have one entry per sub-block. In memory all
 * tokens lie side by side, tile after tile: a token's row would be far from the next one's, and 512
 * rows touch more pages than the TLB holds (as rows: half the speed). */
struct tile_act {
    alignas(64) int8_t q[TILE_COLS];
    float d[TILE_SUBS];
    float bias[TILE_SUBS];    /* -1.5 * 2^23 * d */
    int32_t start[TILE_SUBS]; /* DOT_BIAS - offset * sum; an ISA may take some codes signed */
    float sum[TILE_SUBS];     /* -(d * sum) */
};

/* `blocks` blocks of TILE_ROWS rows, `stride` bytes apart. */
typedef void tile_unpack(const uint8_t *w, size_t stride, uint32_t blocks,
                         struct linear_tile *tile);

/* y[t][0..TILE_ROWS) continued over `subs` sub-blocks, or begun by the `first` of them, for
 * `tokens` <= TILE_TOKENS. */
typedef void tile_mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                      uint32_t tokens, bool first, float *y, size_t y_stride);

/* One token's y[0..TILE_ROWS) continued (or begun) over `blocks` blocks of TILE_ROWS rows; what
 * unpack and mul give, bit for bit. */
typedef void tile_gemv(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                       bool first, float *y);

/* Whole sub-blocks of an unpacked tile, in the order of the ISA's own tile_mul. */
typedef void tile_arrange(struct linear_tile *tile, const struct quant *quant, uint32_t cols);

struct tile_isa {
    tile_mul *(*choose_mul)(const struct quant *quant);
    tile_gemv *gemv[QUANT_COUNT];     /* NULL: unpack and mul */
    tile_unpack *unpack[QUANT_COUNT]; /* all integer formats */
    tile_arrange *arrange;            /* NULL: mul takes what unpack gives */
};

void linear_tiles(const struct linear_job *job, uint32_t row0, uint32_t row1,
                  const struct tile_isa *isa);

#endif
