/* SPDX-License-Identifier: Apache-2.0
 *
 * q8_k.h: Q8_K, 256 weights in 292 bytes, one float scale. For activations; files may hold it.
 *
 *   byte 0    4               260              292
 *        | d  | qs: 256 int8  | sums: 16 int16 |      d: float (not float16)
 *
 *   weight[i] = d * qs[i];  code = qs + 128.  sums are of 16 qs each, not needed to decode.
 * The product rounds, unlike that of the other formats: d has a whole mantissa. */
#ifndef QUANT_Q8_K_H
#define QUANT_Q8_K_H

#include "quant/unpack.h"

enum { Q8_K_BLOCK = 256, Q8_K_SUB = 32, Q8_K_OFFSET = 128 };

struct q8_k_block {
    uint8_t d[4];
    uint8_t qs[256];
    uint8_t sums[32];
};

QUANT_FN void q8_k_sub(const struct q8_k_block *b, uint32_t s, uint8_t *code, float *scale,
                       float *min) {
    for (uint32_t i = 0; i < 32; i++) code[i] = b->qs[s * 32 + i] ^ 0x80;
    *scale = half_float(quant_load32(b->d));
    *min = 0;
}

QUANT_FN void q8_k_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct q8_k_block *b = (const struct q8_k_block *)block;
    for (uint32_t s = 0; s < 8; s++) q8_k_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
