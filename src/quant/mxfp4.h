/* SPDX-License-Identifier: Apache-2.0
 *
 * mxfp4.h: MXFP4 (OCP Microscaling Formats, v1.0), 32 weights in 17 bytes: E2M1 values, a power of
 * two as scale.
 *
 *   byte 0    1                17
 *        | e  | qs: 16 bytes   |      e: exponent, bias 127
 *
 *   weight i < 16: index = low nibble of qs[i];  i >= 16: high nibble of qs[i - 16]
 *   weight = 2^(e - 128) * value[index]; the values are E2M1's doubled, so that they are integers.
 *   e = 255 is no NaN here but 2^127.  code = value + 128 */
#ifndef QUANT_MXFP4_H
#define QUANT_MXFP4_H

#include "quant/unpack.h"

enum { MXFP4_BLOCK = 32, MXFP4_SUB = 32, MXFP4_OFFSET = 128 };

struct mxfp4_block {
    uint8_t e;
    uint8_t qs[16];
};

/* 0 1 2 3 4 6 8 12 and their negatives, each + 128; NVFP4 has the same. */
QUANT_TABLE uint8_t mxfp4_value[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                       128, 127, 126, 125, 124, 122, 120, 116};

/* 2^(e - 128); a denormal float for e < 2. */
QUANT_FN float mxfp4_scale(uint32_t e) {
    return half_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

QUANT_FN void mxfp4_sub(const struct mxfp4_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    (void)s;
    for (uint32_t i = 0; i < 16; i++) {
        code[i] = mxfp4_value[b->qs[i] & 15];
        code[i + 16] = mxfp4_value[b->qs[i] >> 4];
    }
    *scale = mxfp4_scale(b->e);
    *min = 0;
}

QUANT_FN void mxfp4_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    mxfp4_sub((const struct mxfp4_block *)block, 0, code, scale, min);
}

#endif
