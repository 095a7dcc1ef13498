/* SPDX-License-Identifier: Apache-2.0
 *
 * iq4_nl.h: IQ4_NL, 32 weights in 18 bytes: 4-bit indices of 16 unevenly spaced values, one scale.
 *
 *   byte 0    2                18
 *        | d  | qs: 16 bytes   |      d: float16
 *
 *   weight i < 16: index = low nibble of qs[i];  i >= 16: high nibble of qs[i - 16]
 *   weight = d * value[index];  code = value + 128 */
#ifndef QUANT_IQ4_NL_H
#define QUANT_IQ4_NL_H

#include "quant/unpack.h"

enum { IQ4_NL_BLOCK = 32, IQ4_NL_SUB = 32, IQ4_NL_OFFSET = 128 };

struct iq4_nl_block {
    uint8_t d[2];
    uint8_t qs[16];
};

/* -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, each + 128. */
QUANT_TABLE uint8_t iq4_nl_value[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                        129, 141, 153, 166, 181, 197, 217, 241};

/* 32 nibbles to codes; IQ4_XS has the same. */
QUANT_FN void iq4_nl_codes(const uint8_t *qs, uint8_t *code) {
    for (uint32_t i = 0; i < 16; i++) {
        code[i] = iq4_nl_value[qs[i] & 15];
        code[i + 16] = iq4_nl_value[qs[i] >> 4];
    }
}

QUANT_FN void iq4_nl_sub(const struct iq4_nl_block *b, uint32_t s, uint8_t *code, float *scale,
                         float *min) {
    (void)s;
    iq4_nl_codes(b->qs, code);
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void iq4_nl_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    iq4_nl_sub((const struct iq4_nl_block *)block, 0, code, scale, min);
}

#endif
