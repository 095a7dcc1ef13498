/* SPDX-License-Identifier: Apache-2.0
 *
 * q2_k.h: Q2_K, 256 weights in 84 bytes: 2-bit codes; 16 sub-blocks of 16, 4-bit scales and mins.
 *
 *   byte 0             16           80   82     84
 *        | scales: 16  | qs: 2 x 32 | d  | dmin |      d, dmin: float16
 *
 *   scales[s]: low nibble the scale, high nibble the min of sub-block s
 *   qs[32 h + i], bits 2 g and 2 g + 1 (h = 0, 1; g = 0..3): weight 128 h + 32 g + i
 *   weight = (d * scale) * code - (dmin * min) */
#ifndef QUANT_Q2_K_H
#define QUANT_Q2_K_H

#include "quant/unpack.h"

enum { Q2_K_BLOCK = 256, Q2_K_SUB = 16, Q2_K_OFFSET = 0 };

struct q2_k_block {
    uint8_t scales[16];
    uint8_t qs[64];
    uint8_t d[2];
    uint8_t dmin[2];
};

/* The 16 two-bit codes of sub-block s; Q3_K has the same. */
QUANT_FN void q2_k_codes(const uint8_t *all, uint32_t s, uint8_t *code) {
    const uint8_t *qs = all + s / 8 * 32 + s % 2 * 16;
    uint32_t shift = s / 2 % 4 * 2;
    for (uint32_t i = 0; i < 16; i++) code[i] = qs[i] >> shift & 3;
}

QUANT_FN void q2_k_sub(const struct q2_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    q2_k_codes(b->qs, s, code);
    *scale = quant_load_half(b->d) * (float)(b->scales[s] & 15);
    *min = quant_load_half(b->dmin) * (float)(b->scales[s] >> 4);
}

QUANT_FN void q2_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q2_k_block *b = (const struct q2_k_block *)block;
    for (uint32_t s = 0; s < 16; s++) q2_k_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
