/* SPDX-License-Identifier: Apache-2.0
 * q2_k.c: descriptor of Q2_K; layout in q2_k.h. */
#include "quant/q2_k.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q2_k_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < Q2_K_BLOCK / Q2_K_SUB; s++, dst += Q2_K_SUB) {
            uint8_t code[Q2_K_SUB];
            float scale, min;
            q2_k_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, Q2_K_SUB, scale, Q2_K_OFFSET, min, dst);
        }
    }
}

const struct quant quant_q2_k = {
    .name = "Q2_K",
    .id = 10,
    .block = Q2_K_BLOCK,
    .bytes = sizeof(struct q2_k_block),
    .decode = decode,
    .sub = Q2_K_SUB,
    .offset = Q2_K_OFFSET,
    .has_min = true,
    .unpack = q2_k_unpack,
};
