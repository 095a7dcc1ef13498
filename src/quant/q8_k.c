/* SPDX-License-Identifier: Apache-2.0
 * q8_k.c: descriptor of Q8_K; layout in q8_k.h. */
#include "quant/q8_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q8_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q8_K_BLOCK / Q8_K_SUB; s++, dst += Q8_K_SUB) {
            uint8_t code[Q8_K_SUB];
            float scale, min;
            q8_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q8_K_SUB, scale, Q8_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q8_k = {
    .name = "Q8_K",
    .id = 15,
    .block = Q8_K_BLOCK,
    .bytes = sizeof(struct q8_k_block),
    .decode = decode,
    .sub = Q8_K_SUB,
    .offset = Q8_K_OFFSET,
    .unpack = q8_k_unpack,
};
