/* SPDX-License-Identifier: Apache-2.0
 *
 * q5_0.h: Q5_0, 32 weights in 22 bytes: 5-bit codes around 16, one scale.
 *
 *   byte 0    2         6                22
 *        | d  | qh: 32  | qs: 16 bytes   |      d: float16
 *             | bits    |
 *
 *   weight i < 16:  code = low nibble of qs[i]        | bit i of qh << 4
 *   weight i >= 16: code = high nibble of qs[i - 16]  | bit i of qh << 4
 *   weight = d * (code - 16) */
#ifndef QUANT_Q5_0_H
#define QUANT_Q5_0_H

#include "quant/unpack.h"

enum { Q5_0_BLOCK = 32, Q5_0_SUB = 32, Q5_0_OFFSET = 16 };

struct q5_0_block {
    uint8_t d[2];
    uint8_t qh[4];
    uint8_t qs[16];
};

/* Codes of Q5_0 and Q5_1: 32 nibbles and 32 fifth bits. */
QUANT_FN void q5_0_codes(const uint8_t *qh, const uint8_t *qs, uint8_t *code) {
    uint32_t high = quant_load32(qh);
    for (uint32_t i = 0; i < 16; i++) {
        code[i] = (uint8_t)((qs[i] & 15) | (high >> i & 1) << 4);
        code[i + 16] = (uint8_t)(qs[i] >> 4 | (high >> (i + 16) & 1) << 4);
    }
}

QUANT_FN void q5_0_sub(const struct q5_0_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    (void)s;
    q5_0_codes(b->qh, b->qs, code);
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void q5_0_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    q5_0_sub((const struct q5_0_block *)block, 0, code, scale, min);
}

#endif
