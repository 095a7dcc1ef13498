/* SPDX-License-Identifier: Apache-2.0
 * q4_k.c: descriptor of Q4_K; layout in q4_k.h. */
#include "quant/q4_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q4_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q4_K_BLOCK / Q4_K_SUB; s++, dst += Q4_K_SUB) {
            uint8_t code[Q4_K_SUB];
            float scale, min;
            q4_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q4_K_SUB, scale, Q4_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q4_k = {
    .name = "Q4_K",
    .id = 12,
    .block = Q4_K_BLOCK,
    .bytes = sizeof(struct q4_k_block),
    .decode = decode,
    .sub = Q4_K_SUB,
    .offset = Q4_K_OFFSET,
    .has_min = true,
    .unpack = q4_k_unpack,
};
