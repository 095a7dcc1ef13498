/* SPDX-License-Identifier: Apache-2.0
 * iq2_xs.c: descriptor of IQ2_XS; layout in iq2_xs.h. */
#include "quant/iq2_xs.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq2_xs_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ2_XS_BLOCK / IQ2_XS_SUB; s++, dst += IQ2_XS_SUB) {
            uint8_t code[IQ2_XS_SUB];
            float scale, min;
            iq2_xs_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ2_XS_SUB, scale, IQ2_XS_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq2_xs = {
    .name = "IQ2_XS",
    .id = 17,
    .block = IQ2_XS_BLOCK,
    .bytes = sizeof(struct iq2_xs_block),
    .decode = decode,
    .sub = IQ2_XS_SUB,
    .offset = IQ2_XS_OFFSET,
    .unpack = iq2_xs_unpack,
};
