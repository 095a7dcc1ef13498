/* SPDX-License-Identifier: Apache-2.0
 * q4_0.c: descriptor of Q4_0; layout in q4_0.h. */
#include "quant/q4_0.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q4_0_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q4_0_BLOCK / Q4_0_SUB; s++, dst += Q4_0_SUB) {
            uint8_t code[Q4_0_SUB];
            float scale, min;
            q4_0_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q4_0_SUB, scale, Q4_0_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q4_0 = {
    .name = "Q4_0",
    .id = 2,
    .block = Q4_0_BLOCK,
    .bytes = sizeof(struct q4_0_block),
    .decode = decode,
    .sub = Q4_0_SUB,
    .offset = Q4_0_OFFSET,
    .unpack = q4_0_unpack,
};
