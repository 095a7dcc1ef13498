/* SPDX-License-Identifier: Apache-2.0
 *
 * unpack.h: what the block headers share. Blocks are structs of bytes alone (alignment 1, no
 * padding), read little endian byte by byte, so a block may lie anywhere in a mapped file.
 *
 * Every integer format's header has the same shape:
 *     struct <fmt>_block                  the bytes
 *     enum { <FMT>_BLOCK, <FMT>_SUB, <FMT>_OFFSET }
 *     <fmt>_sub(b, s, code, scale, min)   sub-block s: <FMT>_SUB codes, one scale, one min
 *     <fmt>_unpack(block, code, scale, min)  all sub-blocks; see struct quant in quant.h
 * Loops run over plain bytes, with shifts that do not change inside: compilers vectorise them. */
#ifndef QUANT_UNPACK_H
#define QUANT_UNPACK_H

#include "quant/half.h"

QUANT_FN uint32_t quant_load16(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }

QUANT_FN uint32_t quant_load32(const uint8_t *p) {
    return quant_load16(p) | quant_load16(p + 2) << 16;
}

/* The float16 at p. */
QUANT_FN float quant_load_half(const uint8_t *p) {
    return half_f16_to_f32((uint16_t)quant_load16(p));
}

/* The formula of all integer formats: one sub-block's codes to weights. */
QUANT_FN void quant_expand(const uint8_t *code, uint32_t n, float scale, int32_t offset, float min,
                           float *dst) {
    for (uint32_t i = 0; i < n; i++) dst[i] = scale * (float)(code[i] - offset) - min;
}

#endif
