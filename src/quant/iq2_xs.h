/* SPDX-License-Identifier: Apache-2.0
 *
 * iq2_xs.h: IQ2_XS, 256 weights in 74 bytes: 16 sub-blocks of 16, 4-bit scales.
 *
 *   byte 0    2                 66          74
 *        | d  | qs: 32 x 16 bit | scales: 8 |      d: float16
 *
 *   qs[l] for weights 8 l ... 8 l + 7: bits 8-0 a row of iq2_xs_grid, bits 15-9 its signs
 *   scale of sub-block s: nibble s % 2 of scales[s / 2]
 *   weight = (d * (0.5 + scale) * 0.25) * +-magnitude;  code = +-magnitude + 128 */
#ifndef QUANT_IQ2_XS_H
#define QUANT_IQ2_XS_H

#include "quant/grids.h"

enum { IQ2_XS_BLOCK = 256, IQ2_XS_SUB = 16, IQ2_XS_OFFSET = 128 };

struct iq2_xs_block {
    uint8_t d[2];
    uint8_t qs[64];
    uint8_t scales[8];
};

QUANT_FN void iq2_xs_sub(const struct iq2_xs_block *b, uint32_t s, uint8_t *code, float *scale,
                         float *min) {
    uint32_t sc = b->scales[s / 2] >> s % 2 * 4 & 15;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t q = quant_load16(b->qs + s * 4 + k * 2);
        grid_codes(iq2_xs_grid[q & 511], 8, grid_signs7(q >> 9), code + k * 8);
    }
    *scale = quant_load_half(b->d) * (0.5f + (float)(int32_t)sc) * 0.25f;
    *min = 0;
}

QUANT_FN void iq2_xs_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq2_xs_block *b = (const struct iq2_xs_block *)block;
    for (uint32_t s = 0; s < 16; s++) iq2_xs_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
