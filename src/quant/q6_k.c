/* SPDX-License-Identifier: Apache-2.0
 * q6_k.c: descriptor of Q6_K; layout in q6_k.h. */
#include "quant/q6_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q6_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q6_K_BLOCK / Q6_K_SUB; s++, dst += Q6_K_SUB) {
            uint8_t code[Q6_K_SUB];
            float scale, min;
            q6_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q6_K_SUB, scale, Q6_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q6_k = {
    .name = "Q6_K",
    .id = 14,
    .block = Q6_K_BLOCK,
    .bytes = sizeof(struct q6_k_block),
    .decode = decode,
    .sub = Q6_K_SUB,
    .offset = Q6_K_OFFSET,
    .unpack = q6_k_unpack,
};
