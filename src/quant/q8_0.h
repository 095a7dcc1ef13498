/* SPDX-License-Identifier: Apache-2.0
 *
 * q8_0.h: Q8_0, 32 weights in 34 bytes, one scale.
 *
 *   byte 0    2                      34
 *        | d  | qs: 32 int8          |      d: float16
 *
 *   weight[i] = d * qs[i];  code = qs + 128 */
#ifndef QUANT_Q8_0_H
#define QUANT_Q8_0_H

#include "quant/unpack.h"

enum { Q8_0_BLOCK = 32, Q8_0_SUB = 32, Q8_0_OFFSET = 128 };

struct q8_0_block {
    uint8_t d[2];
    uint8_t qs[32];
};

QUANT_FN void q8_0_sub(const struct q8_0_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    (void)s;
    for (uint32_t i = 0; i < 32; i++) code[i] = b->qs[i] ^ 0x80;
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void q8_0_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    q8_0_sub((const struct q8_0_block *)block, 0, code, scale, min);
}

#endif
