/* SPDX-License-Identifier: Apache-2.0
 *
 * q4_k.h: Q4_K, 256 weights in 144 bytes: 4-bit codes; 8 sub-blocks of 32, 6-bit scale and min.
 *
 *   byte 0    2      4            16                                144
 *        | d  | dmin | scales: 12 | qs: 4 groups of 32 bytes        |   d, dmin: float16
 *
 *   qs[32 g + i]: low nibble = weight 64 g + i, high nibble = weight 64 g + 32 + i
 *   scales, with sc and m of sub-blocks 0..7 (bits 7..0 of each byte, j = 0..3):
 *     byte j      | sc[4+j] bits 5-4 | sc[j] bits 5-0  |
 *     byte 4 + j  | m[4+j] bits 5-4  | m[j] bits 5-0   |
 *     byte 8 + j  | m[4+j] bits 3-0  | sc[4+j] bits 3-0 |
 *   weight = (d * sc) * code - (dmin * m) */
#ifndef QUANT_Q4_K_H
#define QUANT_Q4_K_H

#include "quant/unpack.h"

enum { Q4_K_BLOCK = 256, Q4_K_SUB = 32, Q4_K_OFFSET = 0 };

struct q4_k_block {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t qs[128];
};

/* The 6-bit scale and min of sub-block s; Q5_K packs them the same way. */
QUANT_FN void q4_k_scale_min(const uint8_t *scales, uint32_t s, uint32_t *sc, uint32_t *m) {
    uint32_t j = s & 3;
    if (s < 4) {
        *sc = scales[j] & 63u;
        *m = scales[4 + j] & 63u;
    } else {
        *sc = (scales[8 + j] & 15u) | (scales[j] & 0xc0u) >> 2;
        *m = (uint32_t)scales[8 + j] >> 4 | (scales[4 + j] & 0xc0u) >> 2;
    }
}

QUANT_FN void q4_k_sub(const struct q4_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    uint32_t sc, m, shift = s % 2 * 4;
    const uint8_t *qs = b->qs + s / 2 * 32;
    for (uint32_t i = 0; i < 32; i++) code[i] = qs[i] >> shift & 15;
    q4_k_scale_min(b->scales, s, &sc, &m);
    *scale = quant_load_half(b->d) * (float)(int32_t)sc;
    *min = quant_load_half(b->dmin) * (float)(int32_t)m;
}

QUANT_FN void q4_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q4_k_block *b = (const struct q4_k_block *)block;
    for (uint32_t s = 0; s < 8; s++) q4_k_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
