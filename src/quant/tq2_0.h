/* SPDX-License-Identifier: Apache-2.0
 *
 * tq2_0.h: TQ2_0, 256 ternary weights in 66 bytes, two bits each, one scale.
 *
 *   byte 0            64   66
 *        | qs: 2 x 32 | d  |      d: float16
 *
 *   qs[32 h + i], bits 2 g and 2 g + 1 (h = 0, 1; g = 0..3): weight 128 h + 32 g + i
 *   weight = d * (code - 1);  code 3 is no ternary value but decodes to 2 d */
#ifndef QUANT_TQ2_0_H
#define QUANT_TQ2_0_H

#include "quant/unpack.h"

enum { TQ2_0_BLOCK = 256, TQ2_0_SUB = 32, TQ2_0_OFFSET = 1 };

struct tq2_0_block {
    uint8_t qs[64];
    uint8_t d[2];
};

QUANT_FN void tq2_0_sub(const struct tq2_0_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    const uint8_t *qs = b->qs + s / 4 * 32;
    uint32_t shift = s % 4 * 2;
    for (uint32_t i = 0; i < 32; i++) code[i] = qs[i] >> shift & 3;
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void tq2_0_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct tq2_0_block *b = (const struct tq2_0_block *)block;
    for (uint32_t s = 0; s < 8; s++) tq2_0_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
