/* SPDX-License-Identifier: Apache-2.0
 *
 * iq4_xs.h: IQ4_XS, 256 weights in 136 bytes: IQ4_NL's values; 8 sub-blocks of 32, 6-bit scales.
 *
 *   byte 0    2          4           8                             136
 *        | d  | scales_h | scales_l: | qs: 8 sub-blocks of 16      |  d: float16, scales_h: 16
 *                        | 4 bytes   |                             |  bits
 *
 *   scale of sub-block s, around 32: low four bits nibble s % 2 of scales_l[s / 2], high two bits
 *   2 s and 2 s + 1 of scales_h
 *   weight = (d * (scale - 32)) * value[index];  code = value + 128 */
#ifndef QUANT_IQ4_XS_H
#define QUANT_IQ4_XS_H

#include "quant/iq4_nl.h"

enum { IQ4_XS_BLOCK = 256, IQ4_XS_SUB = 32, IQ4_XS_OFFSET = 128 };

struct iq4_xs_block {
    uint8_t d[2];
    uint8_t scales_h[2];
    uint8_t scales_l[4];
    uint8_t qs[128];
};

QUANT_FN int32_t iq4_xs_scale(const struct iq4_xs_block *b, uint32_t s) {
    uint32_t low = b->scales_l[s / 2] >> s % 2 * 4 & 15;
    uint32_t high = quant_load16(b->scales_h) >> s * 2 & 3;
    return (int32_t)(low | high << 4) - 32;
}

QUANT_FN void iq4_xs_sub(const struct iq4_xs_block *b, uint32_t s, uint8_t *code, float *scale,
                         float *min) {
    iq4_nl_codes(b->qs + s * 16, code);
    *scale = quant_load_half(b->d) * (float)iq4_xs_scale(b, s);
    *min = 0;
}

QUANT_FN void iq4_xs_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq4_xs_block *b = (const struct iq4_xs_block *)block;
    for (uint32_t s = 0; s < 8; s++) iq4_xs_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
