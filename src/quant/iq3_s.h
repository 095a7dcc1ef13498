/* SPDX-License-Identifier: Apache-2.0
 *
 * iq3_s.h: IQ3_S, 256 weights in 110 bytes: 8 sub-blocks of 32, 4-bit scales, signs stored whole.
 *
 *   byte 0    2           66      74          106         110
 *        | d  | qs: 8 x 8 | qh: 8 | signs: 32 | scales: 4 |      d: float16
 *
 *   Sub-block s, j = 0..7, 4 magnitudes: row qs[8 s + j] + 256 * (bit j of qh[s]) of iq3_s_grid
 *   sign of weight 8 l + i: bit i of signs[l];  scale: nibble s % 2 of scales[s / 2]
 *   weight = (d * (1 + 2 scale)) * +-magnitude;  code = +-magnitude + 128 */
#ifndef QUANT_IQ3_S_H
#define QUANT_IQ3_S_H

#include "quant/grids.h"

enum { IQ3_S_BLOCK = 256, IQ3_S_SUB = 32, IQ3_S_OFFSET = 128 };

struct iq3_s_block {
    uint8_t d[2];
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};

QUANT_FN void iq3_s_sub(const struct iq3_s_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    uint32_t sc = b->scales[s / 2] >> s % 2 * 4 & 15;
    for (uint32_t j = 0; j < 8; j++) {
        uint32_t row = b->qs[s * 8 + j] | (b->qh[s] >> j & 1u) << 8;
        uint32_t signs = (uint32_t)b->signs[s * 4 + j / 2] >> j % 2 * 4;
        grid_codes(iq3_s_grid[row], 4, signs, code + j * 4);
    }
    *scale = quant_load_half(b->d) * (float)(int32_t)(1 + 2 * sc);
    *min = 0;
}

QUANT_FN void iq3_s_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq3_s_block *b = (const struct iq3_s_block *)block;
    for (uint32_t s = 0; s < 8; s++) iq3_s_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
