/* SPDX-License-Identifier: Apache-2.0
 * tq1_0.c: descriptor of TQ1_0; layout in tq1_0.h. */
#include "quant/tq1_0.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct tq1_0_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < TQ1_0_BLOCK / TQ1_0_SUB; s++, dst += TQ1_0_SUB) {
            uint8_t code[TQ1_0_SUB];
            float scale, min;
            tq1_0_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, TQ1_0_SUB, scale, TQ1_0_OFFSET, min, dst);
        }
    }
}

const struct quant quant_tq1_0 = {
    .name = "TQ1_0",
    .id = 34,
    .block = TQ1_0_BLOCK,
    .bytes = sizeof(struct tq1_0_block),
    .decode = decode,
    .sub = TQ1_0_SUB,
    .offset = TQ1_0_OFFSET,
    .unpack = tq1_0_unpack,
};
