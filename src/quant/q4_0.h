/* SPDX-License-Identifier: Apache-2.0
 *
 * q4_0.h: Q4_0, 32 weights in 18 bytes: 4-bit codes around 8, one scale.
 *
 *   byte 0    2                18
 *        | d  | qs: 16 bytes   |      d: float16
 *
 *   weight i < 16:  code = low nibble of qs[i];  i >= 16: high nibble of qs[i - 16]
 *   weight = d * (code - 8) */
#ifndef QUANT_Q4_0_H
#define QUANT_Q4_0_H

#include "quant/unpack.h"

enum { Q4_0_BLOCK = 32, Q4_0_SUB = 32, Q4_0_OFFSET = 8 };

struct q4_0_block {
    uint8_t d[2];
    uint8_t qs[16];
};

/* 32 nibbles: the low ones first. Q4_1 has the same. */
QUANT_FN void q4_0_codes(const uint8_t *qs, uint8_t *code) {
    for (uint32_t i = 0; i < 16; i++) {
        code[i] = qs[i] & 15;
        code[i + 16] = qs[i] >> 4;
    }
}

QUANT_FN void q4_0_sub(const struct q4_0_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    (void)s;
    q4_0_codes(b->qs, code);
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void q4_0_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    q4_0_sub((const struct q4_0_block *)block, 0, code, scale, min);
}

#endif
