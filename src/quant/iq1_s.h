/* SPDX-License-Identifier: Apache-2.0
 *
 * iq1_s.h: IQ1_S, 256 weights in 50 bytes: 8 sub-blocks of 32, ternary values shifted by 1/8.
 *
 *   byte 0    2        34             50
 *        | d  | qs: 32 | qh: 8 x 16   |      d: float16
 *             |        | bits         |
 *
 *   Sub-block s, row k = 0..3 of 8 values in -1, 0, 1: row qs[4 s + k] + 256 * (bits 3 k up to
 *   3 k + 2 of qh[s]) of iq1_s_grid;  qh[s]: bits 14-12 the scale, bit 15 the sign of the shift
 *   weight = (d * (2 scale + 1)) * (value +- 1/8)
 *          = (d * (2 scale + 1) / 8) * (8 value +- 1);  code = 8 value +- 1 + 128 */
#ifndef QUANT_IQ1_S_H
#define QUANT_IQ1_S_H

#include "quant/grids.h"

enum { IQ1_S_BLOCK = 256, IQ1_S_SUB = 32, IQ1_S_OFFSET = 128 };

struct iq1_s_block {
    uint8_t d[2];
    uint8_t qs[32];
    uint8_t qh[16];
};

/* One row, shifted down if `down`. The grid holds 8 value + 128. IQ1_M has the same. */
QUANT_FN void iq1_s_codes(uint32_t row, uint32_t down, uint8_t *code) {
    const uint8_t *grid = iq1_s_grid[row];
    int32_t shift = down ? -1 : 1;
    for (uint32_t i = 0; i < 8; i++) code[i] = (uint8_t)(grid[i] + shift);
}

QUANT_FN void iq1_s_sub(const struct iq1_s_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    uint32_t qh = quant_load16(b->qh + s * 2);
    for (uint32_t k = 0; k < 4; k++)
        iq1_s_codes(b->qs[s * 4 + k] | (qh >> 3 * k & 7) << 8, qh >> 15, code + k * 8);
    *scale = quant_load_half(b->d) * (float)(int32_t)(2 * (qh >> 12 & 7) + 1) * 0.125f;
    *min = 0;
}

QUANT_FN void iq1_s_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq1_s_block *b = (const struct iq1_s_block *)block;
    for (uint32_t s = 0; s < 8; s++) iq1_s_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
