/* SPDX-License-Identifier: Apache-2.0
 * iq3_xxs.c: descriptor of IQ3_XXS; layout in iq3_xxs.h. */
#include "quant/iq3_xxs.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct iq3_xxs_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < IQ3_XXS_BLOCK / IQ3_XXS_SUB; s++, dst += IQ3_XXS_SUB) {
            uint8_t code[IQ3_XXS_SUB];
            float scale, min;
            iq3_xxs_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, IQ3_XXS_SUB, scale, IQ3_XXS_OFFSET, min, dst);
        }
    }
}

const struct quant quant_iq3_xxs = {
    .name = "IQ3_XXS",
    .id = 18,
    .block = IQ3_XXS_BLOCK,
    .bytes = sizeof(struct iq3_xxs_block),
    .decode = decode,
    .sub = IQ3_XXS_SUB,
    .offset = IQ3_XXS_OFFSET,
    .unpack = iq3_xxs_unpack,
};
