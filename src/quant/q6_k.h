/* SPDX-License-Identifier: Apache-2.0
 *
 * q6_k.h: Q6_K, 256 weights in 210 bytes: 6-bit codes around 32; 16 sub-blocks of 16, int8 scales.
 *
 *   byte 0              128          192             208  210
 *        | ql: 2 x 64   | qh: 2 x 32 | scales: 16    | d  |     d: float16, scales: int8
 *
 *   Half h of 128 weights is four groups g of 32; its weight 32 g + i has
 *     bits 3-0: nibble g / 2 (0 low, 1 high) of ql[64 h + 32 (g % 2) + i]
 *     bits 5-4: bits 2 g, 2 g + 1 of qh[32 h + i]
 *   weight = (d * scales[s]) * (code - 32) */
#ifndef QUANT_Q6_K_H
#define QUANT_Q6_K_H

#include "quant/unpack.h"

enum { Q6_K_BLOCK = 256, Q6_K_SUB = 16, Q6_K_OFFSET = 32 };

struct q6_k_block {
    uint8_t ql[128];
    uint8_t qh[64];
    uint8_t scales[16];
    uint8_t d[2];
};

QUANT_FN void q6_k_sub(const struct q6_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    uint32_t half = s / 8, group = s / 2 % 4, first = s % 2 * 16;
    const uint8_t *ql = b->ql + half * 64 + group % 2 * 32 + first;
    const uint8_t *qh = b->qh + half * 32 + first;
    uint32_t low = group / 2 * 4, high = group * 2;
    for (uint32_t i = 0; i < 16; i++)
        code[i] = (uint8_t)((ql[i] >> low & 15) | (qh[i] >> high & 3) << 4);
    *scale = quant_load_half(b->d) * (float)(int8_t)b->scales[s];
    *min = 0;
}

QUANT_FN void q6_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q6_k_block *b = (const struct q6_k_block *)block;
    for (uint32_t s = 0; s < 16; s++) q6_k_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
