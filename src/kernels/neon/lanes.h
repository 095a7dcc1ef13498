/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: the few operations that the bodies need beyond the compiler's vector arithmetic: 4 rows
 * at a time for body/linear_unpack.h and gemv.h, sums of 16 lanes for body/linear_float.h. */
#ifndef KERNELS_NEON_LANES_H
#define KERNELS_NEON_LANES_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "kernels/body/inline.h"

enum { LANES = 4 };
typedef uint32_t lanes_u __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef float lanes_f __attribute__((vector_size(4 * LANES)));

/* 16 bytes at p of each row: v[j] gets their dword j, lane = row. */
INLINE void lanes_load(const uint8_t *p, size_t stride, lanes_u v[4]) {
    uint32x4_t a[4];
    for (int i = 0; i < 4; i++) a[i] = vreinterpretq_u32_u8(vld1q_u8(p + i * stride));
    uint32x4x2_t t01 = vtrnq_u32(a[0], a[1]), t23 = vtrnq_u32(a[2], a[3]);
    for (int i = 0; i < 2; i++) {
        v[i] = (lanes_u)vcombine_u32(vget_low_u32(t01.val[i]), vget_low_u32(t23.val[i]));
        v[i + 2] = (lanes_u)vcombine_u32(vget_high_u32(t01.val[i]), vget_high_u32(t23.val[i]));
    }
}

/* The float16 in the low half of each lane. */
INLINE lanes_f lanes_half(lanes_u v) {
    return (lanes_f)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32((uint32x4_t)v)));
}

/* The float16 at p of each row. */
INLINE lanes_f lanes_half_at(const uint8_t *p, size_t stride) {
    uint16_t h[LANES];
    for (int i = 0; i < LANES; i++) memcpy(&h[i], p + i * stride, sizeof h[i]);
    return (lanes_f)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h)));
}

INLINE lanes_f lanes_set1(float s) { return (lanes_f)vdupq_n_f32(s); }
INLINE lanes_f lanes_at(const float *p) { return (lanes_f)vld1q_f32(p); }
INLINE void lanes_put(float *p, lanes_f v) { vst1q_f32(p, (float32x4_t)v); }
INLINE lanes_f lanes_fma(lanes_f a, lanes_f b, lanes_f c) {
    return (lanes_f)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

/* Bit from + b of each lane to bit `to` of its byte b = 0..3, the other bits 0. */
INLINE lanes_u lanes_spread(lanes_u v, int from, int to) {
    return ((v >> from & 15) * 0x00204081u & 0x01010101u) << to;
}

/* Each byte of v, below 16, replaced by table[byte]. */
INLINE lanes_u lanes_lookup(lanes_u v, const uint8_t table[16]) {
    return (lanes_u)vreinterpretq_u32_u8(
        vqtbl1q_u8(vld1q_u8(table), vreinterpretq_u8_u32((uint32x4_t)v)));
}

/* The dword `index` of a table, in each lane. */
INLINE lanes_u lanes_gather(const uint8_t *table, lanes_u index) {
    lanes_u v;
    for (int i = 0; i < LANES; i++) {
        uint32_t dword;
        memcpy(&dword, table + (size_t)4 * index[i], sizeof dword);
        v[i] = dword;
    }
    return v;
}

/* ---- 16 floats ---- */
struct f16x { float32x4_t v[4]; };

INLINE struct f16x f16x_zero(void) {
    float32x4_t zero = vdupq_n_f32(0);
    return (struct f16x){{zero, zero, zero, zero}};
}
INLINE struct f16x f16x_load(const float *p) {
    return (struct f16x){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
INLINE void f16x_store(float *p, struct f16x a) {
    UNROLL for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, a.v[i]);
}
INLINE struct f16x f16x_fma(struct f16x a, struct f16x b, struct f16x c) {
    UNROLL for (int i = 0; i < 4; i++) c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
    return c;
}
INLINE struct f16x f16x_half(const uint8_t *p) {
    struct f16x a;
    UNROLL for (int i = 0; i < 4; i++)
        a.v[i] = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * i)));
    return a;
}
INLINE struct f16x f16x_bf16(const uint8_t *p) {
    struct f16x a;
    UNROLL for (int i = 0; i < 4; i++)
        a.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p + 8 * i)), 16));
    return a;
}
/* ((l, l+8), (l, l+4), (l, l+2), (l, l+1)) */
INLINE float f16x_sum(struct f16x a) {
    float32x4_t s = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    float32x2_t q = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(q, 0) + vget_lane_f32(q, 1);
}

/* Of 16 of them, `stride` floats apart. */
INLINE struct f16x f16x_sums(const float *p, size_t stride) {
    float sum[16];
    for (int i = 0; i < 16; i++) sum[i] = f16x_sum(f16x_load(p + (size_t)i * stride));
    return f16x_load(sum);
}

/* Rows and tokens whose sums fit the registers. */
enum { FLOAT_ROWS = 2, FLOAT_TOKENS = 2 };

#endif
