/* SPDX-License-Identifier: Apache-2.0
 *
 * iq2_xxs.h: IQ2_XXS, 256 weights in 66 bytes: 8 sub-blocks of 32 in 8 bytes each.
 *
 *   byte 0    2                      66
 *        | d  | qs: 8 x 8 bytes      |      d: float16
 *
 *   A sub-block: bytes 0-3 name four rows of 8 magnitudes (iq2_xxs_grid); bytes 4-7 are a word:
 *     | 31-28 scale | 27-21 signs of row 3 | 20-14 of row 2 | 13-7 of row 1 | 6-0 of row 0 |
 *   weight = (d * (0.5 + scale) * 0.25) * +-magnitude;  code = +-magnitude + 128 */
#ifndef QUANT_IQ2_XXS_H
#define QUANT_IQ2_XXS_H

#include "quant/grids.h"

enum { IQ2_XXS_BLOCK = 256, IQ2_XXS_SUB = 32, IQ2_XXS_OFFSET = 128 };

struct iq2_xxs_block {
    uint8_t d[2];
    uint8_t qs[64];
};

QUANT_FN void iq2_xxs_sub(const struct iq2_xxs_block *b, uint32_t s, uint8_t *code, float *scale,
                          float *min) {
    const uint8_t *qs = b->qs + s * 8;
    uint32_t word = quant_load32(qs + 4);
    for (uint32_t k = 0; k < 4; k++)
        grid_codes(iq2_xxs_grid[qs[k]], 8, grid_signs7(word >> 7 * k), code + k * 8);
    *scale = quant_load_half(b->d) * (0.5f + (float)(int32_t)(word >> 28)) * 0.25f;
    *min = 0;
}

QUANT_FN void iq2_xxs_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq2_xxs_block *b = (const struct iq2_xxs_block *)block;
    for (uint32_t s = 0; s < 8; s++) iq2_xxs_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
