/* SPDX-License-Identifier: Apache-2.0
 * iq1_s.c: descriptor of IQ1_S; layout in iq1_s.h. */
#include "quant/iq1_s.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq1_s_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ1_S_BLOCK / IQ1_S_SUB; s++, dst += IQ1_S_SUB) {
            uint8_t code[IQ1_S_SUB];
            float scale, min;
            iq1_s_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ1_S_SUB, scale, IQ1_S_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq1_s = {
    .name = "IQ1_S",
    .id = 19,
    .block = IQ1_S_BLOCK,
    .bytes = sizeof(struct iq1_s_block),
    .decode = decode,
    .sub = IQ1_S_SUB,
    .offset = IQ1_S_OFFSET,
    .unpack = iq1_s_unpack,
};
