/* SPDX-License-Identifier: Apache-2.0
 * bf16.c: BF16, conversions in half.h. */
#include "quant/half.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, sizeof h);
        dst[i] = half_bf16_to_f32(h);
    }
}

static void encode(const float *src, void *dst, size_t n) {
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        uint16_t h = half_f32_to_bf16(src[i]);
        memcpy(p + 2 * i, &h, sizeof h);
    }
}

const struct quant quant_bf16 = {
    .name = "BF16", .id = 30, .block = 1, .bytes = 2, .decode = decode, .encode = encode};
