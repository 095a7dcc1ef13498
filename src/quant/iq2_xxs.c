/* SPDX-License-Identifier: Apache-2.0
 * iq2_xxs.c: descriptor of IQ2_XXS; layout in iq2_xxs.h. */
#include "quant/iq2_xxs.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq2_xxs_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ2_XXS_BLOCK / IQ2_XXS_SUB; s++, dst += IQ2_XXS_SUB) {
            uint8_t code[IQ2_XXS_SUB];
            float scale, min;
            iq2_xxs_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ2_XXS_SUB, scale, IQ2_XXS_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq2_xxs = {
    .name = "IQ2_XXS",
    .id = 16,
    .block = IQ2_XXS_BLOCK,
    .bytes = sizeof(struct iq2_xxs_block),
    .decode = decode,
    .sub = IQ2_XXS_SUB,
    .offset = IQ2_XXS_OFFSET,
    .unpack = iq2_xxs_unpack,
};
