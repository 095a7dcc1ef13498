/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_pack.h: act rows as tiles, with what tile_mul needs of a token beside a tile, as plain
 * loops that the compiler turns into vectors of the includer's ISA; a full tile has constant trip
 * counts. */
#ifndef KERNELS_BODY_LINEAR_PACK_H
#define KERNELS_BODY_LINEAR_PACK_H

#include "kernels/body/act.h"
#include "kernels/body/linear_tile.h"

static inline __attribute__((always_inline)) void pack_subs(
    const float *restrict d, const int32_t *restrict sum16, const uint32_t subs,
    const uint32_t halves, const int32_t offset, struct tile_act *restrict out) {
    for (uint32_t s = 0; s < subs; s++) {
        float step = d[s * halves / 2];
        int32_t sum = halves == 2 ? sum16[2 * s] + sum16[2 * s + 1] : sum16[s];
        out->d[s] = step;
        out->bias[s] = -DOT_BIAS_VALUE * step;
        out->start[s] = DOT_BIAS - offset * sum;
        out->sum[s] = -(step * (float)sum);
    }
}

static inline __attribute__((always_inline)) void pack_tile(const struct act *x, uint32_t k,
                                                            uint32_t cols, uint32_t sub,
                                                            int32_t offset, struct tile_act *out) {
    const float *d = x->d + k / ACT_BLOCK;
    const int32_t *sum16 = x->sum16 + k / 16;
    memcpy(out->q, x->q + k, cols);
    if (sub == 32)
        pack_subs(d, sum16, cols / 32, 2, offset, out);
    else
        pack_subs(d, sum16, cols / 16, 1, offset, out);
}

/* One row; `out` is its place in the first tile, `tokens` later is that in the next. */
static void pack(const struct act *x, uint32_t cols, uint32_t sub, int32_t offset,
                 struct tile_act *out, uint32_t tokens) {
    uint32_t k = 0;
    for (; k + TILE_COLS <= cols; k += TILE_COLS, out += tokens)
        pack_tile(x, k, TILE_COLS, sub, offset, out);
    if (k < cols) pack_tile(x, k, cols - k, sub, offset, out);
}

#endif
