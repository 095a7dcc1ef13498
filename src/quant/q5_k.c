/* SPDX-License-Identifier: Apache-2.0
 * q5_k.c: descriptor of Q5_K; layout in q5_k.h. */
#include "quant/q5_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q5_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q5_K_BLOCK / Q5_K_SUB; s++, dst += Q5_K_SUB) {
            uint8_t code[Q5_K_SUB];
            float scale, min;
            q5_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q5_K_SUB, scale, Q5_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q5_k = {
    .name = "Q5_K",
    .id = 13,
    .block = Q5_K_BLOCK,
    .bytes = sizeof(struct q5_k_block),
    .decode = decode,
    .sub = Q5_K_SUB,
    .offset = Q5_K_OFFSET,
    .has_min = true,
    .unpack = q5_k_unpack,
};
