/* SPDX-License-Identifier: Apache-2.0
 * vec_scalar.h: the vocabulary of vec.h in plain C. */
#ifndef KERNELS_BODY_VEC_ISA_H
#define KERNELS_BODY_VEC_ISA_H

#include <math.h>

#include "kernels/body/vec.h"
#include "quant/quant.h"

typedef struct vf { float v[16]; } vf;

/* Tile sizes of attention: query rows, and vectors of positions or features. */
enum { VEC_ROWS = 2, VEC_WIDE = 1 };

#define LANES(expression)                                    \
    vf r;                                                    \
    for (int i = 0; i < VF; i++) r.v[i] = (expression);      \
    return r

VEC_INLINE uint32_t vec_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
VEC_INLINE float vec_float(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

VEC_INLINE vf vf_set1(float s) { LANES(s); }
VEC_INLINE vf vf_zero(void) { return vf_set1(0); }
VEC_INLINE vf vf_iota(void) { LANES((float)i); }
VEC_INLINE vf vf_load(const float *p) { LANES(p[i]); }
VEC_INLINE vf vf_load_n(const float *p, uint32_t n) { LANES((uint32_t)i < n ? p[i] : 0); }
VEC_INLINE void vf_store(float *p, vf a) { memcpy(p, a.v, sizeof a.v); }
VEC_INLINE void vf_store_n(float *p, vf a, uint32_t n) { memcpy(p, a.v, n * sizeof *p); }
VEC_INLINE vf vf_load_f16(const uint16_t *p) { LANES(quant_f16_to_f32(p[i])); }
VEC_INLINE vf vf_load_f16_n(const uint16_t *p, uint32_t n) {
    LANES((uint32_t)i < n ? quant_f16_to_f32(p[i]) : 0);
}
VEC_INLINE void vf_store_f16_n(uint16_t *p, vf a, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) p[i] = quant_f32_to_f16(a.v[i]);
}
VEC_INLINE void vf_store_f16(uint16_t *p, vf a) { vf_store_f16_n(p, a, VF); }

VEC_INLINE vf vf_load_bf16(const uint16_t *p) { LANES(quant_bf16_to_f32(p[i])); }
VEC_INLINE void vf_store_bf16(uint16_t *p, vf a) {
    for (int i = 0; i < VF; i++) p[i] = quant_f32_to_bf16(a.v[i]);
}
VEC_INLINE vf vf_load_i8(const int8_t *p) { LANES(p[i]); }
VEC_INLINE void vf_store_i8(int8_t *p, vf a) {
    for (int i = 0; i < VF; i++) p[i] = (int8_t)rintf(a.v[i]);
}
VEC_INLINE vf vf_load_low(const uint8_t *p) { LANES((float)((p[i] & 15) - 8)); }
VEC_INLINE vf vf_load_high(const uint8_t *p) { LANES((float)((p[i] >> 4) - 8)); }

VEC_INLINE vf vf_add(vf a, vf b) { LANES(a.v[i] + b.v[i]); }
VEC_INLINE vf vf_sub(vf a, vf b) { LANES(a.v[i] - b.v[i]); }
VEC_INLINE vf vf_mul(vf a, vf b) { LANES(a.v[i] * b.v[i]); }
VEC_INLINE vf vf_div(vf a, vf b) { LANES(a.v[i] / b.v[i]); }
VEC_INLINE vf vf_fma(vf a, vf b, vf c) { LANES(__builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
VEC_INLINE vf vf_fnma(vf a, vf b, vf c) { LANES(__builtin_fmaf(-a.v[i], b.v[i], c.v[i])); }
VEC_INLINE vf vf_abs(vf a) { LANES(vec_float(vec_bits(a.v[i]) & 0x7fffffff)); }
VEC_INLINE vf vf_neg(vf a) { LANES(-a.v[i]); }
VEC_INLINE vf vf_sqrt(vf a) { LANES(sqrtf(a.v[i])); }
VEC_INLINE vf vf_copysign(vf size, vf sign) {
    LANES(vec_float((vec_bits(size.v[i]) & 0x7fffffff) | (vec_bits(sign.v[i]) & 0x80000000)));
}
VEC_INLINE vf vf_max(vf a, vf b) { LANES(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
VEC_INLINE vf vf_min(vf a, vf b) { LANES(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
VEC_INLINE vf vf_if_lt(vf a, vf b, vf x, vf y) { LANES(a.v[i] < b.v[i] ? x.v[i] : y.v[i]); }
VEC_INLINE vf vf_exp2(vf t) { LANES(vec_float((vec_bits(t.v[i]) << 23) + 0x3f800000)); }

VEC_INLINE float vf_sum(vf a) {
    for (int half = VF / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.v[i] += a.v[i + half];
    return a.v[0];
}
VEC_INLINE float vf_top(vf a) {
    for (int half = VF / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
    return a.v[0];
}
VEC_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd) {
    for (int i = 0; i < VF / 2; i++) {
        even->v[i] = a.v[2 * i], even->v[i + 8] = b.v[2 * i];
        odd->v[i] = a.v[2 * i + 1], odd->v[i + 8] = b.v[2 * i + 1];
    }
}
VEC_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b) {
    for (int i = 0; i < VF / 2; i++) {
        a->v[2 * i] = even.v[i], b->v[2 * i] = even.v[i + 8];
        a->v[2 * i + 1] = odd.v[i], b->v[2 * i + 1] = odd.v[i + 8];
    }
}

typedef struct vi { int32_t v[16]; } vi;
typedef struct vb { int8_t v[64]; } vb;
VEC_INLINE vi vi_set1(int32_t x) {
    vi a;
    for (int i = 0; i < VF; i++) a.v[i] = x;
    return a;
}
VEC_INLINE vi vi_start(int32_t sum) {
    (void)sum;
    return vi_set1(0);
}
VEC_INLINE vb vb_load(const int8_t *p) {
    vb b;
    memcpy(b.v, p, sizeof b.v);
    return b;
}
VEC_INLINE void vb_load_nibbles(const uint8_t *p, vb *low, vb *high) {
    for (int i = 0; i < 4 * VF; i++) {
        low->v[i] = (int8_t)(p[i] & 15);
        high->v[i] = (int8_t)(p[i] >> 4);
    }
}
VEC_INLINE vi vi_dot(vi a, vb b, const int8_t *q) {
    for (int i = 0; i < 4 * VF; i++) a.v[i / 4] += b.v[i] * q[i % 4];
    return a;
}
VEC_INLINE vf vf_from_vi(vi a) { LANES((float)a.v[i]); }

#undef LANES
#endif
