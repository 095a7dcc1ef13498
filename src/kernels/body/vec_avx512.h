/* SPDX-License-Identifier: Apache-2.0
 * vec_avx512.h: the vocabulary of vec.h, one register a vf. */
#ifndef KERNELS_BODY_VEC_ISA_H
#define KERNELS_BODY_VEC_ISA_H

#include <immintrin.h>

#include "kernels/body/vec.h"

typedef __m512 vf;

/* Tile sizes of attention: 24 accumulators and 4 loads of the 32 registers. */
enum { VEC_ROWS = 6, VEC_WIDE = 4 };

VEC_INLINE __mmask16 vec_first(uint32_t n) { return (__mmask16)((1u << n) - 1); }

VEC_INLINE vf vf_set1(float s) { return _mm512_set1_ps(s); }
VEC_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
VEC_INLINE vf vf_iota(void) {
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
VEC_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VEC_INLINE vf vf_load_n(const float *p, uint32_t n) {
    return _mm512_maskz_loadu_ps(vec_first(n), p);
}
VEC_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
VEC_INLINE void vf_store_n(float *p, vf a, uint32_t n) {
    _mm512_mask_storeu_ps(p, vec_first(n), a);
}
VEC_INLINE vf vf_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
VEC_INLINE vf vf_load_f16_n(const uint16_t *p, uint32_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vec_first(n), p));
}
VEC_INLINE __m256i vec_half(vf a) {
    return _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VEC_INLINE void vf_store_f16(uint16_t *p, vf a) { _mm256_storeu_si256((__m256i *)p, vec_half(a)); }
VEC_INLINE void vf_store_f16_n(uint16_t *p, vf a, uint32_t n) {
    _mm256_mask_storeu_epi16(p, vec_first(n), vec_half(a));
}
VEC_INLINE vf vf_load_bf16(const uint16_t *p) {
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}
VEC_INLINE void vf_store_bf16(uint16_t *p, vf a) {
    __m512i x = _mm512_castps_si512(a), high = _mm512_srli_epi32(x, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i even = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i r = _mm512_mask_or_epi32(_mm512_srli_epi32(even, 16),
                                     _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), high,
                                     _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(r));
}
VEC_INLINE vf vf_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
VEC_INLINE void vf_store_i8(int8_t *p, vf a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}
/* A permutation looks at the low four bits of an index. */
VEC_INLINE vf vec_code(__m512i nibble) {
    return _mm512_permutexvar_ps(
        nibble, _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
}
VEC_INLINE vf vf_load_low(const uint8_t *p) {
    return vec_code(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
VEC_INLINE vf vf_load_high(const uint8_t *p) {
    __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    return vec_code(_mm512_srli_epi32(x, 4));
}

VEC_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VEC_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
VEC_INLINE vf vf_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
VEC_INLINE vf vf_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }
VEC_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VEC_INLINE vf vf_copysign(vf size, vf sign) {
    return _mm512_or_ps(vf_abs(size), _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
VEC_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VEC_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC_INLINE vf vf_if_lt(vf a, vf b, vf x, vf y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
VEC_INLINE vf vf_exp2(vf t) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(n, _mm512_set1_epi32(0x3f800000)));
}

VEC_INLINE float vf_sum(vf a) {
    __m256 x = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
VEC_INLINE float vf_top(vf a) {
    __m256 x = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
VEC_INLINE void vf_unzip(vf a, vf b, vf *even, vf *odd) {
    const __m512i from =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, from, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(from, _mm512_set1_epi32(1)), b);
}
VEC_INLINE void vf_zip(vf even, vf odd, vf *a, vf *b) {
    const __m512i from =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *a = _mm512_permutex2var_ps(even, from, odd);
    *b = _mm512_permutex2var_ps(even, _mm512_add_epi32(from, _mm512_set1_epi32(8)), odd);
}

/* vpdpbusd wants one side unsigned: codes + 128, which adds 128 * sum(q) that the start takes off.
 * Nibbles are unsigned as they are. */
typedef __m512i vi;
typedef __m512i vb;
VEC_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
VEC_INLINE vi vi_start(int32_t sum) { return _mm512_set1_epi32(-128 * sum); }
VEC_INLINE vb vb_load(const int8_t *p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
}
VEC_INLINE void vb_load_nibbles(const uint8_t *p, vb *low, vb *high) {
    const __m512i mask = _mm512_set1_epi8(15);
    __m512i x = _mm512_loadu_si512(p);
    *low = _mm512_and_si512(x, mask);
    *high = _mm512_and_si512(_mm512_srli_epi32(x, 4), mask);
}
VEC_INLINE vi vi_dot(vi a, vb b, const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm512_dpbusd_epi32(a, b, _mm512_set1_epi32(four));
}
VEC_INLINE vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }

#endif
