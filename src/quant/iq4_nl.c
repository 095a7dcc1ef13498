/* SPDX-License-Identifier: Apache-2.0
 * iq4_nl.c: descriptor of IQ4_NL; layout in iq4_nl.h. */
#include "quant/iq4_nl.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq4_nl_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ4_NL_BLOCK / IQ4_NL_SUB; s++, dst += IQ4_NL_SUB) {
            uint8_t code[IQ4_NL_SUB];
            float scale, min;
            iq4_nl_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ4_NL_SUB, scale, IQ4_NL_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq4_nl = {
    .name = "IQ4_NL",
    .id = 20,
    .block = IQ4_NL_BLOCK,
    .bytes = sizeof(struct iq4_nl_block),
    .decode = decode,
    .sub = IQ4_NL_SUB,
    .offset = IQ4_NL_OFFSET,
    .unpack = iq4_nl_unpack,
};
