/* SPDX-License-Identifier: Apache-2.0
 * q3_k.c: descriptor of Q3_K; layout in q3_k.h. */
#include "quant/q3_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q3_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q3_K_BLOCK / Q3_K_SUB; s++, dst += Q3_K_SUB) {
            uint8_t code[Q3_K_SUB];
            float scale, min;
            q3_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q3_K_SUB, scale, Q3_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q3_k = {
    .name = "Q3_K",
    .id = 11,
    .block = Q3_K_BLOCK,
    .bytes = sizeof(struct q3_k_block),
    .decode = decode,
    .sub = Q3_K_SUB,
    .offset = Q3_K_OFFSET,
    .unpack = q3_k_unpack,
};
