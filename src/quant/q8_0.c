/* SPDX-License-Identifier: Apache-2.0
 * q8_0.c: descriptor of Q8_0; layout in q8_0.h. */
#include "quant/q8_0.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct q8_0_block *b = src;
    for (size_t i = 0; i < n; i++, dst += Q8_0_BLOCK) {
        uint8_t code[Q8_0_SUB];
        float scale, min;
        q8_0_sub(&b[i], 0, code, &scale, &min);
        quant_expand(code, Q8_0_SUB, scale, Q8_0_OFFSET, min, dst);
    }
}

/* Nearest integer, halves away from zero. What is no small number (NaN, or infinity from a scale
 * whose reciprocal overflows) becomes 0. */
static int8_t nearest(float x) {
    float a = x < 0 ? -x : x;
    if (!(a < 128)) return 0;
    int32_t whole = (int32_t)a;
    whole += a - (float)whole >= 0.5f;
    return (int8_t)(x < 0 ? -whole : whole);
}

static void encode_block(const float *x, struct q8_0_block *b) {
    float most = 0;
    bool nan = false;
    for (uint32_t i = 0; i < Q8_0_BLOCK; i++) {
        float a = x[i] < 0 ? -x[i] : x[i];
        most = a > most ? a : most;
        nan |= x[i] != x[i];
    }
    float d = (nan ? half_float(0x7fc00000) : most) / 127;
    float inverse = d != 0 ? 1 / d : 0;
    uint16_t h = half_f32_to_f16(d);
    b->d[0] = (uint8_t)h;
    b->d[1] = (uint8_t)(h >> 8);
    for (uint32_t i = 0; i < Q8_0_BLOCK; i++) b->qs[i] = (uint8_t)nearest(x[i] * inverse);
}

static void encode(const float *src, void *dst, size_t n) {
    struct q8_0_block *b = dst;
    for (size_t i = 0; i < n; i++) encode_block(src + i * Q8_0_BLOCK, &b[i]);
}

const struct quant quant_q8_0 = {
    .name = "Q8_0",
    .id = 8,
    .block = Q8_0_BLOCK,
    .bytes = sizeof(struct q8_0_block),
    .decode = decode,
    .encode = encode,
    .sub = Q8_0_SUB,
    .offset = Q8_0_OFFSET,
    .unpack = q8_0_unpack,
};
