/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: the few operations that the bodies need beyond the compiler's vector arithmetic: 8 rows
 * at a time for body/linear_unpack.h and gemv.h, sums of 16 lanes for body/linear_float.h. */
#ifndef KERNELS_AVX2_LANES_H
#define KERNELS_AVX2_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/body/inline.h"

enum { LANES = 8 };
typedef uint32_t lanes_u __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef float lanes_f __attribute__((vector_size(4 * LANES)));

/* 16 bytes at p of each row: v[j] gets their dword j, lane = row. */
INLINE void lanes_load(const uint8_t *p, size_t stride, lanes_u v[4]) {
    __m256i a[4];
    for (int i = 0; i < 4; i++)
        a[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(p + i * stride))),
            _mm_loadu_si128((const __m128i *)(p + (4 + i) * stride)), 1);
    __m256i lo01 = _mm256_unpacklo_epi32(a[0], a[1]), hi01 = _mm256_unpackhi_epi32(a[0], a[1]);
    __m256i lo23 = _mm256_unpacklo_epi32(a[2], a[3]), hi23 = _mm256_unpackhi_epi32(a[2], a[3]);
    v[0] = (lanes_u)_mm256_unpacklo_epi64(lo01, lo23);
    v[1] = (lanes_u)_mm256_unpackhi_epi64(lo01, lo23);
    v[2] = (lanes_u)_mm256_unpacklo_epi64(hi01, hi23);
    v[3] = (lanes_u)_mm256_unpackhi_epi64(hi01, hi23);
}

/* The float16 in the low half of each lane, whose high half is 0. */
INLINE lanes_f lanes_half(lanes_u v) {
    __m128i low = _mm256_castsi256_si128((__m256i)v),
            high = _mm256_extracti128_si256((__m256i)v, 1);
    return (lanes_f)_mm256_cvtph_ps(_mm_packus_epi32(low, high));
}

/* The float16 at p of each row. */
INLINE lanes_f lanes_half_at(const uint8_t *p, size_t stride) {
    uint16_t h[LANES];
    for (int i = 0; i < LANES; i++) memcpy(&h[i], p + i * stride, sizeof h[i]);
    return (lanes_f)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)h));
}

INLINE lanes_f lanes_set1(float s) { return (lanes_f)_mm256_set1_ps(s); }
INLINE lanes_f lanes_at(const float *p) { return (lanes_f)_mm256_loadu_ps(p); }
INLINE void lanes_put(float *p, lanes_f v) { _mm256_storeu_ps(p, (__m256)v); }
INLINE lanes_f lanes_fma(lanes_f a, lanes_f b, lanes_f c) {
    return (lanes_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

/* Bit from + b of each lane to bit `to` of its byte b = 0..3, the other bits 0. */
INLINE lanes_u lanes_spread(lanes_u v, int from, int to) {
    return ((v >> from & 15) * 0x00204081u & 0x01010101u) << to;
}

/* Each byte of v, below 16, replaced by table[byte]. */
INLINE lanes_u lanes_lookup(lanes_u v, const uint8_t table[16]) {
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (lanes_u)_mm256_shuffle_epi8(t, (__m256i)v);
}

/* The dword `index` of a table, in each lane. */
INLINE lanes_u lanes_gather(const uint8_t *table, lanes_u index) {
    return (lanes_u)_mm256_i32gather_epi32((const int *)(const void *)table, (__m256i)index, 4);
}

/* ---- 16 floats ---- */
struct f16x {
    __m256 v[2];
};

INLINE struct f16x f16x_zero(void) {
    return (struct f16x){{_mm256_setzero_ps(), _mm256_setzero_ps()}};
}
INLINE struct f16x f16x_load(const float *p) {
    return (struct f16x){{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}
INLINE void f16x_store(float *p, struct f16x a) {
    _mm256_storeu_ps(p, a.v[0]);
    _mm256_storeu_ps(p + 8, a.v[1]);
}
INLINE struct f16x f16x_fma(struct f16x a, struct f16x b, struct f16x c) {
    return (struct f16x){
        {_mm256_fmadd_ps(a.v[0], b.v[0], c.v[0]), _mm256_fmadd_ps(a.v[1], b.v[1], c.v[1])}};
}
INLINE struct f16x f16x_half(const uint8_t *p) {
    return (struct f16x){{_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16)))}};
}
INLINE struct f16x f16x_bf16(const uint8_t *p) {
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 16)));
    return (struct f16x){{_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                          _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))}};
}
/* ((l, l+8), (l, l+4), (l, l+2), (l, l+1)) */
INLINE float f16x_sum(struct f16x a) {
    __m256 s = _mm256_add_ps(a.v[0], a.v[1]);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* Of 8 of them, `stride` floats apart; the same additions, each for several of them at once. */
INLINE __m256 sums_of_8(const float *p, size_t stride) {
    __m256 half[8], quarter[4], pair[2];
    for (int i = 0; i < 8; i++)
        half[i] = _mm256_add_ps(_mm256_loadu_ps(p + (size_t)i * stride),
                                _mm256_loadu_ps(p + (size_t)i * stride + 8));
    for (int i = 0; i < 4; i++)
        quarter[i] = _mm256_add_ps(_mm256_permute2f128_ps(half[i], half[i + 4], 0x20),
                                   _mm256_permute2f128_ps(half[i], half[i + 4], 0x31));
    for (int i = 0; i < 2; i++) {
        __m256d a = _mm256_castps_pd(quarter[2 * i]), b = _mm256_castps_pd(quarter[2 * i + 1]);
        pair[i] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                                _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    }
    return _mm256_add_ps(_mm256_shuffle_ps(pair[0], pair[1], 0x88),
                         _mm256_shuffle_ps(pair[0], pair[1], 0xdd));
}
/* Of 16. */
INLINE struct f16x f16x_sums(const float *p, size_t stride) {
    return (struct f16x){{sums_of_8(p, stride), sums_of_8(p + 8 * stride, stride)}};
}

/* Rows and tokens whose sums fit the registers. */
enum { FLOAT_ROWS = 2, FLOAT_TOKENS = 2 };

#endif
