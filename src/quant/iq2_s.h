/* SPDX-License-Identifier: Apache-2.0
 *
 * iq2_s.h: IQ2_S, 256 weights in 82 bytes: 16 sub-blocks of 16, 4-bit scales, signs stored whole.
 *
 *   byte 0    2        34          66      74          82
 *        | d  | qs: 32 | signs: 32 | qh: 8 | scales: 8 |      d: float16
 *
 *   weights 8 l ... 8 l + 7 (l = 0..31): the row qs[l] + 256 * (bits 2 (l % 4) and up of qh[l / 4])
 *   of iq2_s_grid, bit i of signs[l] the sign of magnitude i
 *   scale of sub-block s: nibble s % 2 of scales[s / 2]
 *   weight = (d * (0.5 + scale) * 0.25) * +-magnitude;  code = +-magnitude + 128 */
#ifndef QUANT_IQ2_S_H
#define QUANT_IQ2_S_H

#include "quant/grids.h"

enum { IQ2_S_BLOCK = 256, IQ2_S_SUB = 16, IQ2_S_OFFSET = 128 };

struct iq2_s_block {
    uint8_t d[2];
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];
    uint8_t scales[8];
};

QUANT_FN void iq2_s_sub(const struct iq2_s_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    uint32_t sc = b->scales[s / 2] >> s % 2 * 4 & 15;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t l = s * 2 + k;
        uint32_t row = b->qs[l] | (b->qh[l / 4] >> l % 4 * 2 & 3u) << 8;
        grid_codes(iq2_s_grid[row], 8, b->signs[l], code + k * 8);
    }
    *scale = quant_load_half(b->d) * (0.5f + (float)(int32_t)sc) * 0.25f;
    *min = 0;
}

QUANT_FN void iq2_s_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq2_s_block *b = (const struct iq2_s_block *)block;
    for (uint32_t s = 0; s < 16; s++) iq2_s_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
