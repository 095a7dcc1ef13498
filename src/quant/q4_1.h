/* SPDX-License-Identifier: Apache-2.0
 *
 * q4_1.h: Q4_1, 32 weights in 20 bytes: 4-bit codes, one scale, one offset m (a min of -m).
 *
 *   byte 0    2    4                20
 *        | d  | m  | qs: 16 bytes   |      d, m: float16; nibbles as in q4_0.h
 *
 *   weight = d * code + m */
#ifndef QUANT_Q4_1_H
#define QUANT_Q4_1_H

#include "quant/q4_0.h"

enum { Q4_1_BLOCK = 32, Q4_1_SUB = 32, Q4_1_OFFSET = 0 };

struct q4_1_block {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t qs[16];
};

QUANT_FN void q4_1_sub(const struct q4_1_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    (void)s;
    q4_0_codes(b->qs, code);
    *scale = quant_load_half(b->d);
    *min = -quant_load_half(b->m);
}

QUANT_FN void q4_1_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    q4_1_sub((const struct q4_1_block *)block, 0, code, scale, min);
}

#endif
