/* SPDX-License-Identifier: Apache-2.0
 *
 * iq3_xxs.h: IQ3_XXS, 256 weights in 98 bytes: 8 sub-blocks of 32.
 *
 *   byte 0    2             66                98
 *        | d  | qs: 8 x 8   | words: 8 x 32   |      d: float16
 *             |             | bits            |
 *
 *   Sub-block s: qs[8 s + j] (j = 0..7) names a row of 4 magnitudes (iq3_xxs_grid); words[s] is
 *     | 31-28 scale | 27-21 signs of rows 6, 7 | 20-14 of 4, 5 | 13-7 of 2, 3 | 6-0 of 0, 1 |
 *   weight = (d * (0.5 + scale) * 0.5) * +-magnitude;  code = +-magnitude + 128 */
#ifndef QUANT_IQ3_XXS_H
#define QUANT_IQ3_XXS_H

#include "quant/grids.h"

enum { IQ3_XXS_BLOCK = 256, IQ3_XXS_SUB = 32, IQ3_XXS_OFFSET = 128 };

struct iq3_xxs_block {
    uint8_t d[2];
    uint8_t qs[64];
    uint8_t words[32];
};

QUANT_FN void iq3_xxs_sub(const struct iq3_xxs_block *b, uint32_t s, uint8_t *code, float *scale,
                          float *min) {
    const uint8_t *qs = b->qs + s * 8;
    uint32_t word = quant_load32(b->words + s * 4);
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t signs = grid_signs7(word >> 7 * k);
        grid_codes(iq3_xxs_grid[qs[2 * k]], 4, signs, code + k * 8);
        grid_codes(iq3_xxs_grid[qs[2 * k + 1]], 4, signs >> 4, code + k * 8 + 4);
    }
    *scale = quant_load_half(b->d) * (0.5f + (float)(int32_t)(word >> 28)) * 0.5f;
    *min = 0;
}

QUANT_FN void iq3_xxs_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq3_xxs_block *b = (const struct iq3_xxs_block *)block;
    for (uint32_t s = 0; s < 8; s++) iq3_xxs_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
