/* SPDX-License-Identifier: Apache-2.0
 * q4_1.c: descriptor of Q4_1; layout in q4_1.h. */
#include "quant/q4_1.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q4_1_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q4_1_BLOCK / Q4_1_SUB; s++, dst += Q4_1_SUB) {
            uint8_t code[Q4_1_SUB];
            float scale, min;
            q4_1_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q4_1_SUB, scale, Q4_1_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q4_1 = {
    .name = "Q4_1",
    .id = 3,
    .block = Q4_1_BLOCK,
    .bytes = sizeof(struct q4_1_block),
    .decode = decode,
    .sub = Q4_1_SUB,
    .offset = Q4_1_OFFSET,
    .has_min = true,
    .unpack = q4_1_unpack,
};
