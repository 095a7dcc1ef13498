/* SPDX-License-Identifier: Apache-2.0
 *
 * q3_k.h: Q3_K, 256 weights in 110 bytes: 3-bit codes around 4; 16 sub-blocks of 16, 6-bit scales.
 *
 *   byte 0           32           96            108  110
 *        | hmask: 32 | qs: 2 x 32 | scales: 12  | d  |      d: float16
 *
 *   weight 32 g + i (g = 0..7): low two bits in qs as in q2_k.h, third bit = bit g of hmask[i]
 *   scale of sub-block s, around 32:
 *     bits 3-0: s < 8: low nibble of scales[s];  s >= 8: high nibble of scales[s - 8]
 *     bits 5-4: bits 2 (s / 4) and up of scales[8 + s % 4]
 *   weight = (d * (scale - 32)) * (code - 4) */
#ifndef QUANT_Q3_K_H
#define QUANT_Q3_K_H

#include "quant/q2_k.h"

enum { Q3_K_BLOCK = 256, Q3_K_SUB = 16, Q3_K_OFFSET = 4 };

struct q3_k_block {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint8_t d[2];
};

QUANT_FN int32_t q3_k_scale(const uint8_t *scales, uint32_t s) {
    int32_t low = scales[s % 8] >> s / 8 * 4 & 15;
    int32_t high = scales[8 + s % 4] >> s / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

QUANT_FN void q3_k_sub(const struct q3_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    const uint8_t *hmask = b->hmask + s % 2 * 16;
    uint32_t bit = s / 2;
    q2_k_codes(b->qs, s, code);
    for (uint32_t i = 0; i < 16; i++) code[i] = (uint8_t)(code[i] | (hmask[i] >> bit & 1) << 2);
    *scale = quant_load_half(b->d) * (float)q3_k_scale(b->scales, s);
    *min = 0;
}

QUANT_FN void q3_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q3_k_block *b = (const struct q3_k_block *)block;
    for (uint32_t s = 0; s < 16; s++) q3_k_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
