/* SPDX-License-Identifier: Apache-2.0
 *
 * iq1_m.h: IQ1_M, 256 weights in 56 bytes: IQ1_S's rows; 16 sub-blocks of 16, a shift for each row.
 *
 *   byte 0        32       48                56
 *        | qs: 32 | qh: 16 | scales: 4 x 16  |
 *        |        |        | bits            |
 *
 *   Row l = 0..31 of 8 values: nibble l % 2 of qh[l / 2] has three high bits of the row number
 *   and, as bit 3, the sign of the shift
 *   scales[j], j = 0..3:  | 15-12 nibble j of d | 11-9 | 8-6 | 5-3 | 2-0 scale of sub-block 4 j |
 *   d: float16 of the four nibbles, j = 0 lowest
 *   weight = (d * (2 scale + 1) / 8) * (8 value +- 1);  code = 8 value +- 1 + 128 */
#ifndef QUANT_IQ1_M_H
#define QUANT_IQ1_M_H

#include "quant/iq1_s.h"

enum { IQ1_M_BLOCK = 256, IQ1_M_SUB = 16, IQ1_M_OFFSET = 128 };

struct iq1_m_block {
    uint8_t qs[32];
    uint8_t qh[16];
    uint8_t scales[8];
};

QUANT_FN float iq1_m_d(const uint8_t *scales) {
    uint32_t h =
        scales[1] >> 4 | (scales[3] & 0xf0u) | (scales[5] & 0xf0u) << 4 | (scales[7] & 0xf0u) << 8;
    return half_f16_to_f32((uint16_t)h);
}

QUANT_FN void iq1_m_sub(const struct iq1_m_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    uint32_t sc = quant_load16(b->scales + s / 4 * 2) >> s % 4 * 3 & 7;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t high = b->qh[s] >> k * 4;
        iq1_s_codes(b->qs[s * 2 + k] | (high & 7) << 8, high >> 3 & 1, code + k * 8);
    }
    *scale = iq1_m_d(b->scales) * (float)(int32_t)(2 * sc + 1) * 0.125f;
    *min = 0;
}

QUANT_FN void iq1_m_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct iq1_m_block *b = (const struct iq1_m_block *)block;
    for (uint32_t s = 0; s < 16; s++) iq1_m_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
