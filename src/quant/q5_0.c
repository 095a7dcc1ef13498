/* SPDX-License-Identifier: Apache-2.0
 * q5_0.c: descriptor of Q5_0; layout in q5_0.h. */
#include "quant/q5_0.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q5_0_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q5_0_BLOCK / Q5_0_SUB; s++, dst += Q5_0_SUB) {
            uint8_t code[Q5_0_SUB];
            float scale, min;
            q5_0_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q5_0_SUB, scale, Q5_0_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q5_0 = {
    .name = "Q5_0",
    .id = 6,
    .block = Q5_0_BLOCK,
    .bytes = sizeof(struct q5_0_block),
    .decode = decode,
    .sub = Q5_0_SUB,
    .offset = Q5_0_OFFSET,
    .unpack = q5_0_unpack,
};
