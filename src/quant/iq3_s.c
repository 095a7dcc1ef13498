/* SPDX-License-Identifier: Apache-2.0
 * iq3_s.c: descriptor of IQ3_S; layout in iq3_s.h. */
#include "quant/iq3_s.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq3_s_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ3_S_BLOCK / IQ3_S_SUB; s++, dst += IQ3_S_SUB) {
            uint8_t code[IQ3_S_SUB];
            float scale, min;
            iq3_s_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ3_S_SUB, scale, IQ3_S_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq3_s = {
    .name = "IQ3_S",
    .id = 21,
    .block = IQ3_S_BLOCK,
    .bytes = sizeof(struct iq3_s_block),
    .decode = decode,
    .sub = IQ3_S_SUB,
    .offset = IQ3_S_OFFSET,
    .unpack = iq3_s_unpack,
};
