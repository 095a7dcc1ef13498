/* SPDX-License-Identifier: Apache-2.0
 * tq2_0.c: descriptor of TQ2_0; layout in tq2_0.h. */
#include "quant/tq2_0.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct tq2_0_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < TQ2_0_BLOCK / TQ2_0_SUB; s++, dst += TQ2_0_SUB) {
            uint8_t code[TQ2_0_SUB];
            float scale, min;
            tq2_0_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, TQ2_0_SUB, scale, TQ2_0_OFFSET, min, dst);
        }
    }
}

const struct quant quant_tq2_0 = {
    .name = "TQ2_0",
    .id = 35,
    .block = TQ2_0_BLOCK,
    .bytes = sizeof(struct tq2_0_block),
    .decode = decode,
    .sub = TQ2_0_SUB,
    .offset = TQ2_0_OFFSET,
    .unpack = tq2_0_unpack,
};
