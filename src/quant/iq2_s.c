/* SPDX-License-Identifier: Apache-2.0
 * iq2_s.c: descriptor of IQ2_S; layout in iq2_s.h. */
#include "quant/iq2_s.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq2_s_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ2_S_BLOCK / IQ2_S_SUB; s++, dst += IQ2_S_SUB) {
            uint8_t code[IQ2_S_SUB];
            float scale, min;
            iq2_s_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ2_S_SUB, scale, IQ2_S_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq2_s = {
    .name = "IQ2_S",
    .id = 22,
    .block = IQ2_S_BLOCK,
    .bytes = sizeof(struct iq2_s_block),
    .decode = decode,
    .sub = IQ2_S_SUB,
    .offset = IQ2_S_OFFSET,
    .unpack = iq2_s_unpack,
};
