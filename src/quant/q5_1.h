/* SPDX-License-Identifier: Apache-2.0
 *
 * q5_1.h: Q5_1, 32 weights in 24 bytes: 5-bit codes, one scale, one offset m (a min of -m).
 *
 *   byte 0    2    4         8                24
 *        | d  | m  | qh: 32  | qs: 16 bytes   |      d, m: float16; codes as in q5_0.h
 *                  | bits    |
 *
 *   weight = d * code + m */
#ifndef QUANT_Q5_1_H
#define QUANT_Q5_1_H

#include "quant/q5_0.h"

enum { Q5_1_BLOCK = 32, Q5_1_SUB = 32, Q5_1_OFFSET = 0 };

struct q5_1_block {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t qh[4];
    uint8_t qs[16];
};

QUANT_FN void q5_1_sub(const struct q5_1_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    (void)s;
    q5_0_codes(b->qh, b->qs, code);
    *scale = quant_load_half(b->d);
    *min = -quant_load_half(b->m);
}

QUANT_FN void q5_1_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    q5_1_sub((const struct q5_1_block *)block, 0, code, scale, min);
}

#endif
