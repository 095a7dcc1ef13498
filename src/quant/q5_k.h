/* SPDX-License-Identifier: Apache-2.0
 *
 * q5_k.h: Q5_K, 256 weights in 176 bytes: 5-bit codes; 8 sub-blocks of 32, 6-bit scale and min.
 *
 *   byte 0    2      4            16       48                       176
 *        | d  | dmin | scales: 12 | qh: 32 | qs: 4 groups of 32     |   d, dmin: float16
 *
 *   scales and the nibbles in qs as in q4_k.h; fifth bit of weight 32 s + i = bit s of qh[i]
 *   weight = (d * sc) * code - (dmin * m) */
#ifndef QUANT_Q5_K_H
#define QUANT_Q5_K_H

#include "quant/q4_k.h"

enum { Q5_K_BLOCK = 256, Q5_K_SUB = 32, Q5_K_OFFSET = 0 };

struct q5_k_block {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

QUANT_FN void q5_k_sub(const struct q5_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    uint32_t sc, m, shift = s % 2 * 4;
    const uint8_t *qs = b->qs + s / 2 * 32;
    for (uint32_t i = 0; i < 32; i++)
        code[i] = (uint8_t)((qs[i] >> shift & 15) | (b->qh[i] >> s & 1) << 4);
    q4_k_scale_min(b->scales, s, &sc, &m);
    *scale = quant_load_half(b->d) * (float)(int32_t)sc;
    *min = quant_load_half(b->dmin) * (float)(int32_t)m;
}

QUANT_FN void q5_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q5_k_block *b = (const struct q5_k_block *)block;
    for (uint32_t s = 0; s < 8; s++) q5_k_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
