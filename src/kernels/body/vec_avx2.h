/* SPDX-License-Identifier: Apache-2.0
 * vec_avx2.h: the vocabulary of vec.h, two registers a vf: lanes 0-7 and 8-15. */
#ifndef KERNELS_BODY_VEC_ISA_H
#define KERNELS_BODY_VEC_ISA_H

#include <immintrin.h>

#include "kernels/body/vec.h"

typedef struct vf { __m256 a, b; } vf;

/* Tile sizes of attention: 12 accumulators and 2 loads of the 16 registers. */
enum { VEC_ROWS = 6, VEC_WIDE = 1 };

#define HALVES(first, second) return (vf){first, second}

VEC_INLINE vf vf_set1(float s) { HALVES(_mm256_set1_ps(s), _mm256_set1_ps(s)); }
VEC_INLINE vf vf_zero(void) { HALVES(_mm256_setzero_ps(), _mm256_setzero_ps()); }
VEC_INLINE vf vf_iota(void) {
    HALVES(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15));
}
VEC_INLINE vf vf_load(const float *p) { HALVES(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
VEC_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v.a), _mm256_storeu_ps(p + 8, v.b); }
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
    HALVES(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
           _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}
VEC_INLINE vf vf_load_f16_n(const uint16_t *p, uint32_t n) {
    uint16_t t[VF] = {0};
    memcpy(t, p, n * sizeof *p);
    return vf_load_f16(t);
}
VEC_INLINE void vf_store_f16(uint16_t *p, vf v) {
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v.a, NEAREST));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(v.b, NEAREST));
}
VEC_INLINE void vf_store_f16_n(uint16_t *p, vf v, uint32_t n) {
    uint16_t t[VF];
    vf_store_f16(t, v);
    memcpy(p, t, n * sizeof *p);
}
VEC_INLINE __m256 vec_load_bf16(const uint16_t *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
VEC_INLINE vf vf_load_bf16(const uint16_t *p) { HALVES(vec_load_bf16(p), vec_load_bf16(p + 8)); }
VEC_INLINE __m256i vec_bf16(__m256 v) {
    __m256i x = _mm256_castps_si256(v), high = _mm256_srli_epi32(x, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i even = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(even, 16),
                              _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
}
VEC_INLINE void vf_store_bf16(uint16_t *p, vf v) {
    __m256i both = _mm256_packus_epi32(vec_bf16(v.a), vec_bf16(v.b));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(both, 0xd8));
}
VEC_INLINE __m256 vec_load_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
VEC_INLINE vf vf_load_i8(const int8_t *p) { HALVES(vec_load_i8(p), vec_load_i8(p + 8)); }
VEC_INLINE void vf_store_i8(int8_t *p, vf v) {
    __m256i both = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
    both = _mm256_permute4x64_epi64(both, 0xd8);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(_mm256_castsi256_si128(both),
                                                   _mm256_extracti128_si256(both, 1)));
}
VEC_INLINE __m256 vec_low(__m256i x) {
    x = _mm256_and_si256(x, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(x, _mm256_set1_epi32(8)));
}
VEC_INLINE __m256i vec_bytes(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
VEC_INLINE vf vf_load_low(const uint8_t *p) {
    HALVES(vec_low(vec_bytes(p)), vec_low(vec_bytes(p + 8)));
}
VEC_INLINE vf vf_load_high(const uint8_t *p) {
    HALVES(vec_low(_mm256_srli_epi32(vec_bytes(p), 4)),
           vec_low(_mm256_srli_epi32(vec_bytes(p + 8), 4)));
}

VEC_INLINE vf vf_add(vf x, vf y) { HALVES(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)); }
VEC_INLINE vf vf_sub(vf x, vf y) { HALVES(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)); }
VEC_INLINE vf vf_mul(vf x, vf y) { HALVES(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)); }
VEC_INLINE vf vf_div(vf x, vf y) { HALVES(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)); }
VEC_INLINE vf vf_fma(vf x, vf y, vf z) {
    HALVES(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
VEC_INLINE vf vf_fnma(vf x, vf y, vf z) {
    HALVES(_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b));
}
VEC_INLINE vf vf_abs(vf x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    HALVES(_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b));
}
VEC_INLINE vf vf_neg(vf x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    HALVES(_mm256_xor_ps(sign, x.a), _mm256_xor_ps(sign, x.b));
}
VEC_INLINE vf vf_sqrt(vf x) { HALVES(_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)); }
VEC_INLINE vf vf_copysign(vf size, vf sign) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    vf x = vf_abs(size);
    HALVES(_mm256_or_ps(x.a, _mm256_and_ps(bit, sign.a)),
           _mm256_or_ps(x.b, _mm256_and_ps(bit, sign.b)));
}
VEC_INLINE vf vf_max(vf x, vf y) { HALVES(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)); }
VEC_INLINE vf vf_min(vf x, vf y) { HALVES(_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)); }
VEC_INLINE vf vf_if_lt(vf a, vf b, vf x, vf y) {
    HALVES(_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
           _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)));
}
VEC_INLINE __m256 vec_exp2(__m256 t) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(n, _mm256_set1_epi32(0x3f800000)));
}
VEC_INLINE vf vf_exp2(vf t) { HALVES(vec_exp2(t.a), vec_exp2(t.b)); }

VEC_INLINE float vf_sum(vf v) {
    __m256 x = _mm256_add_ps(v.a, v.b);
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
VEC_INLINE float vf_top(vf v) {
    __m256 x = _mm256_max_ps(v.a, v.b);
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
/* 0 2 4 .. 14 (or the odd ones) of the 16 floats x, y. */
VEC_INLINE __m256 vec_pick(__m256 x, __m256 y, int odd) {
    __m256 t = odd ? _mm256_shuffle_ps(x, y, 0xdd) : _mm256_shuffle_ps(x, y, 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(t), 0xd8));
}
VEC_INLINE void vf_unzip(vf x, vf y, vf *even, vf *odd) {
    *even = (vf){vec_pick(x.a, x.b, 0), vec_pick(y.a, y.b, 0)};
    *odd = (vf){vec_pick(x.a, x.b, 1), vec_pick(y.a, y.b, 1)};
}
/* 16 floats: the 8 of x and the 8 of y in turn. */
VEC_INLINE vf vec_weave(__m256 x, __m256 y) {
    __m256 low = _mm256_unpacklo_ps(x, y), high = _mm256_unpackhi_ps(x, y);
    HALVES(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
}
VEC_INLINE void vf_zip(vf even, vf odd, vf *x, vf *y) {
    *x = vec_weave(even.a, odd.a);
    *y = vec_weave(even.b, odd.b);
}

/* vpmaddubsw wants one side unsigned: |code|, whose sign goes to q. Two products of at most
 * 128 * 127 fit in 16 bits. */
typedef struct vi { __m256i a, b; } vi;
typedef struct vb { __m256i a, b; } vb;
VEC_INLINE vi vi_set1(int32_t x) { return (vi){_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
VEC_INLINE vi vi_start(int32_t sum) {
    (void)sum;
    return vi_set1(0);
}
VEC_INLINE vb vb_load(const int8_t *p) {
    return (vb){_mm256_loadu_si256((const __m256i *)p),
                _mm256_loadu_si256((const __m256i *)(p + 32))};
}
VEC_INLINE void vb_load_nibbles(const uint8_t *p, vb *low, vb *high) {
    const __m256i mask = _mm256_set1_epi8(15);
    vb x = vb_load((const int8_t *)p);
    *low = (vb){_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
    *high = (vb){_mm256_and_si256(_mm256_srli_epi32(x.a, 4), mask),
                 _mm256_and_si256(_mm256_srli_epi32(x.b, 4), mask)};
}
VEC_INLINE __m256i vec_dot(__m256i sum, __m256i code, __m256i q) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(q, code));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
VEC_INLINE vi vi_dot(vi a, vb b, const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    __m256i all = _mm256_set1_epi32(four);
    return (vi){vec_dot(a.a, b.a, all), vec_dot(a.b, b.b, all)};
}
VEC_INLINE vf vf_from_vi(vi a) { HALVES(_mm256_cvtepi32_ps(a.a), _mm256_cvtepi32_ps(a.b)); }

#undef HALVES
#endif
