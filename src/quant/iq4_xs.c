/* SPDX-License-Identifier: Apache-2.0
 * iq4_xs.c: descriptor of IQ4_XS; layout in iq4_xs.h. */
#include "quant/iq4_xs.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq4_xs_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ4_XS_BLOCK / IQ4_XS_SUB; s++, dst += IQ4_XS_SUB) {
            uint8_t code[IQ4_XS_SUB];
            float scale, min;
            iq4_xs_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ4_XS_SUB, scale, IQ4_XS_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq4_xs = {
    .name = "IQ4_XS",
    .id = 23,
    .block = IQ4_XS_BLOCK,
    .bytes = sizeof(struct iq4_xs_block),
    .decode = decode,
    .sub = IQ4_XS_SUB,
    .offset = IQ4_XS_OFFSET,
    .unpack = iq4_xs_unpack,
};
