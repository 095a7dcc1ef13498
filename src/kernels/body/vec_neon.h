/* SPDX-License-Identifier: Apache-2.0
 * vec_neon.h: the vocabulary of vec.h, four registers a vf. */
#ifndef KERNELS_BODY_VEC_ISA_H
#define KERNELS_BODY_VEC_ISA_H

#include <arm_neon.h>

#include "kernels/body/vec.h"

typedef struct vf { float32x4_t q[4]; } vf;

/* Tile sizes of attention: 24 accumulators and 4 loads of the 32 registers. */
enum { VEC_ROWS = 6, VEC_WIDE = 1 };

#define QUARTERS(expression)                              \
    vf r;                                                 \
    for (int i = 0; i < 4; i++) r.q[i] = (expression);    \
    return r

VEC_INLINE vf vf_set1(float s) { QUARTERS(vdupq_n_f32(s)); }
VEC_INLINE vf vf_zero(void) { QUARTERS(vdupq_n_f32(0)); }
VEC_INLINE vf vf_load(const float *p) { QUARTERS(vld1q_f32(p + 4 * i)); }
VEC_INLINE void vf_store(float *p, vf v) {
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, v.q[i]);
}
VEC_INLINE vf vf_iota(void) {
    static const float lane[VF] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vf_load(lane);
}
VEC_INLINE vf vf_load_n(const float *p, uint32_t n) {
    float t[VF] = {0};
    memcpy(t, p, n * sizeof *p);
    return vf_load(t);
}
VEC_INLINE void vf_store_n(float *p, vf v, uint32_t n) {
    float t[VF];
    vf_store(t, v);
    memcpy(p, t, n * sizeof *p);
}
VEC_INLINE vf vf_load_f16(const uint16_t *p) {
    QUARTERS(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))));
}
VEC_INLINE vf vf_load_f16_n(const uint16_t *p, uint32_t n) {
    uint16_t t[VF] = {0};
    memcpy(t, p, n * sizeof *p);
    return vf_load_f16(t);
}
VEC_INLINE void vf_store_f16(uint16_t *p, vf v) {
    for (int i = 0; i < 4; i++) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(v.q[i])));
}
VEC_INLINE void vf_store_f16_n(uint16_t *p, vf v, uint32_t n) {
    uint16_t t[VF];
    vf_store_f16(t, v);
    memcpy(p, t, n * sizeof *p);
}
VEC_INLINE vf vf_load_bf16(const uint16_t *p) {
    QUARTERS(vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}
VEC_INLINE void vf_store_bf16(uint16_t *p, vf v) {
    for (int i = 0; i < 4; i++) {
        uint32x4_t x = vreinterpretq_u32_f32(v.q[i]), high = vshrq_n_u32(x, 16);
        uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
        uint32x4_t even = vaddq_u32(x, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        uint32x4_t r = vbslq_u32(vceqq_f32(v.q[i], v.q[i]), vshrq_n_u32(even, 16),
                                 vorrq_u32(high, vdupq_n_u32(0x40)));
        vst1_u16(p + 4 * i, vmovn_u32(r));
    }
}
VEC_INLINE vf vec_widen(int8x16_t x) {
    int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return (vf){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}
VEC_INLINE vf vf_load_i8(const int8_t *p) { return vec_widen(vld1q_s8(p)); }
VEC_INLINE vf vf_load_low(const uint8_t *p) {
    int8x16_t x = vreinterpretq_s8_u8(vandq_u8(vld1q_u8(p), vdupq_n_u8(15)));
    return vec_widen(vsubq_s8(x, vdupq_n_s8(8)));
}
VEC_INLINE vf vf_load_high(const uint8_t *p) {
    int8x16_t x = vreinterpretq_s8_u8(vshrq_n_u8(vld1q_u8(p), 4));
    return vec_widen(vsubq_s8(x, vdupq_n_s8(8)));
}
VEC_INLINE void vf_store_i8(int8_t *p, vf v) {
    int16x4_t x[4];
    for (int i = 0; i < 4; i++) x[i] = vmovn_s32(vcvtnq_s32_f32(v.q[i]));
    vst1q_s8(p, vcombine_s8(vmovn_s16(vcombine_s16(x[0], x[1])),
                            vmovn_s16(vcombine_s16(x[2], x[3]))));
}

VEC_INLINE vf vf_add(vf a, vf b) { QUARTERS(vaddq_f32(a.q[i], b.q[i])); }
VEC_INLINE vf vf_sub(vf a, vf b) { QUARTERS(vsubq_f32(a.q[i], b.q[i])); }
VEC_INLINE vf vf_mul(vf a, vf b) { QUARTERS(vmulq_f32(a.q[i], b.q[i])); }
VEC_INLINE vf vf_div(vf a, vf b) { QUARTERS(vdivq_f32(a.q[i], b.q[i])); }
VEC_INLINE vf vf_fma(vf a, vf b, vf c) { QUARTERS(vfmaq_f32(c.q[i], a.q[i], b.q[i])); }
VEC_INLINE vf vf_fnma(vf a, vf b, vf c) { QUARTERS(vfmsq_f32(c.q[i], a.q[i], b.q[i])); }
VEC_INLINE vf vf_abs(vf a) { QUARTERS(vabsq_f32(a.q[i])); }
VEC_INLINE vf vf_neg(vf a) { QUARTERS(vnegq_f32(a.q[i])); }
VEC_INLINE vf vf_sqrt(vf a) { QUARTERS(vsqrtq_f32(a.q[i])); }
VEC_INLINE vf vf_copysign(vf size, vf sign) {
    QUARTERS(vbslq_f32(vdupq_n_u32(0x80000000), sign.q[i], size.q[i]));
}
VEC_INLINE vf vf_max(vf a, vf b) {
    QUARTERS(vbslq_f32(vcgtq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]));
}
VEC_INLINE vf vf_min(vf a, vf b) {
    QUARTERS(vbslq_f32(vcltq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]));
}
VEC_INLINE vf vf_if_lt(vf a, vf b, vf x, vf y) {
    QUARTERS(vbslq_f32(vcltq_f32(a.q[i], b.q[i]), x.q[i], y.q[i]));
}
VEC_INLINE vf vf_exp2(vf t) {
    QUARTERS(vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(t.q[i]), 23),
                                             vdupq_n_u32(0x3f800000))));
}

VEC_INLINE float vf_sum(vf a) {
    float32x4_t x = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
    float32x2_t y = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(y, 0) + vget_lane_f32(y, 1);
}
VEC_INLINE float vf_top(vf a) {
    float t[VF];
    vf_store(t, a);
    for (int half = VF / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] = t[i] > t[i + half] ? t[i] : t[i + half];
    return t[0];
}
VEC_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd) {
    for (int i = 0; i < 2; i++) {
        float32x4x2_t x = vuzpq_f32(a.q[2 * i], a.q[2 * i + 1]);
        float32x4x2_t y = vuzpq_f32(b.q[2 * i], b.q[2 * i + 1]);
        even->q[i] = x.val[0], even->q[i + 2] = y.val[0];
        odd->q[i] = x.val[1], odd->q[i + 2] = y.val[1];
    }
}
VEC_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b) {
    for (int i = 0; i < 2; i++) {
        float32x4x2_t x = vzipq_f32(even.q[i], odd.q[i]);
        float32x4x2_t y = vzipq_f32(even.q[i + 2], odd.q[i + 2]);
        a->q[2 * i] = x.val[0], a->q[2 * i + 1] = x.val[1];
        b->q[2 * i] = y.val[0], b->q[2 * i + 1] = y.val[1];
    }
}

typedef struct vi { int32x4_t q[4]; } vi;
typedef struct vb { int8x16_t q[4]; } vb;
VEC_INLINE vi vi_set1(int32_t x) {
    return (vi){{vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x)}};
}
VEC_INLINE vi vi_start(int32_t sum) {
    (void)sum;
    return vi_set1(0);
}
VEC_INLINE vb vb_load(const int8_t *p) {
    vb b;
    for (int i = 0; i < 4; i++) b.q[i] = vld1q_s8(p + 16 * i);
    return b;
}
VEC_INLINE void vb_load_nibbles(const uint8_t *p, vb *low, vb *high) {
    for (int i = 0; i < 4; i++) {
        uint8x16_t x = vld1q_u8(p + 16 * i);
        low->q[i] = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
        high->q[i] = vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
    }
}
VEC_INLINE vi vi_dot(vi a, vb b, const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(four));
    for (int i = 0; i < 4; i++) a.q[i] = vdotq_s32(a.q[i], b.q[i], all);
    return a;
}
VEC_INLINE vf vf_from_vi(vi a) { QUARTERS(vcvtq_f32_s32(a.q[i])); }

#undef QUARTERS
#endif
