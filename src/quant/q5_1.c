/* SPDX-License-Identifier: Apache-2.0
 * q5_1.c: descriptor of Q5_1; layout in q5_1.h. */
#include "quant/q5_1.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q5_1_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q5_1_BLOCK / Q5_1_SUB; s++, dst += Q5_1_SUB) {
            uint8_t code[Q5_1_SUB];
            float scale, min;
            q5_1_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q5_1_SUB, scale, Q5_1_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q5_1 = {
    .name = "Q5_1",
    .id = 7,
    .block = Q5_1_BLOCK,
    .bytes = sizeof(struct q5_1_block),
    .decode = decode,
    .sub = Q5_1_SUB,
    .offset = Q5_1_OFFSET,
    .has_min = true,
    .unpack = q5_1_unpack,
};
