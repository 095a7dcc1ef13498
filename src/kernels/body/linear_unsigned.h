/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_unsigned.h: what ISAs have in common whose dot product takes unsigned codes, so that
 * `start` has the offset of every format: the includer brings mul_tokens() with constant `sub` and
 * `has_min`, of which these are the four cases. */
#ifndef KERNELS_BODY_LINEAR_UNSIGNED_H
#define KERNELS_BODY_LINEAR_UNSIGNED_H

#include "kernels/body/linear_pack.h"

#define MUL(name, sub, has_min)                                                           \
    static void name(const struct linear_tile *tile, const struct tile_act *x,            \
                     uint32_t subs, uint32_t tokens, bool first, float *y,                \
                     size_t y_stride) {                                                   \
        mul_tokens(tile, x, subs, tokens, first, y, y_stride, sub, has_min);              \
    }
MUL(mul16, 16, false)
MUL(mul16_min, 16, true)
MUL(mul32, 32, false)
MUL(mul32_min, 32, true)
#undef MUL

static tile_mul *choose_mul(const struct quant *quant) {
    if (quant->sub == 16) return quant->has_min ? mul16_min : mul16;
    return quant->has_min ? mul32_min : mul32;
}

static void pack_unsigned(const struct quant *quant, const struct act *row, uint32_t cols,
                          uint32_t t, uint32_t tokens, void *packed) {
    pack(row, cols, quant->sub, quant->offset, (struct tile_act *)packed + t, tokens);
}

#endif
