/* SPDX-License-Identifier: Apache-2.0
 * iq1_m.c: descriptor of IQ1_M; layout in iq1_m.h. */
#include "quant/iq1_m.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq1_m_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ1_M_BLOCK / IQ1_M_SUB; s++, dst += IQ1_M_SUB) {
            uint8_t code[IQ1_M_SUB];
            float scale, min;
            iq1_m_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ1_M_SUB, scale, IQ1_M_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq1_m = {
    .name = "IQ1_M",
    .id = 29,
    .block = IQ1_M_BLOCK,
    .bytes = sizeof(struct iq1_m_block),
    .decode = decode,
    .sub = IQ1_M_SUB,
    .offset = IQ1_M_OFFSET,
    .unpack = iq1_m_unpack,
};
