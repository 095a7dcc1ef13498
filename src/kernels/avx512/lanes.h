/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: the few operations that the bodies need beyond the compiler's vector arithmetic: 16 rows
 * at a time for body/linear_unpack.h, sums of 16 lanes for body/linear_float.h. */
#ifndef KERNELS_AVX512_LANES_H
#define KERNELS_AVX512_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/body/inline.h"

enum { LANES = 16 };
typedef uint32_t lanes_u __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef float lanes_f __attribute__((vector_size(4 * LANES)));

/* 16 bytes at p of each row: v[j] gets their dword j, lane = row. Rows are put together by 128 bits
 * with masked broadcasts from memory, which spares half of the shuffles of a full transpose. */
INLINE void lanes_load(const uint8_t *p, size_t stride, lanes_u v[4]) {
    __m512i a[4];
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p + i * stride)));
        for (int part = 1; part < 4; part++)
            a[i] = _mm512_mask_broadcast_i32x4(
                a[i], (__mmask16)(0xf << 4 * part),
                _mm_loadu_si128((const __m128i *)(p + (4 * part + i) * stride)));
    }
    __m512i lo01 = _mm512_unpacklo_epi32(a[0], a[1]), hi01 = _mm512_unpackhi_epi32(a[0], a[1]);
    __m512i lo23 = _mm512_unpacklo_epi32(a[2], a[3]), hi23 = _mm512_unpackhi_epi32(a[2], a[3]);
    v[0] = (lanes_u)_mm512_unpacklo_epi64(lo01, lo23);
    v[1] = (lanes_u)_mm512_unpackhi_epi64(lo01, lo23);
    v[2] = (lanes_u)_mm512_unpacklo_epi64(hi01, hi23);
    v[3] = (lanes_u)_mm512_unpackhi_epi64(hi01, hi23);
}

/* The float16 in the low half of each lane. */
INLINE lanes_f lanes_half(lanes_u v) {
    return (lanes_f)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)v));
}

/* The float16 at p of each row. */
INLINE lanes_f lanes_half_at(const uint8_t *p, size_t stride) {
    uint16_t h[LANES];
    for (int i = 0; i < LANES; i++) memcpy(&h[i], p + i * stride, sizeof h[i]);
    return (lanes_f)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)h));
}

/* Bit from + b of each lane to bit `to` of its byte b = 0..3, the other bits 0. */
INLINE lanes_u lanes_spread(lanes_u v, int from, int to) {
    uint64_t low = 0, high = 0;
    for (int b = 0; b < 4; b++) {
        low |= (uint64_t)((from + b - to) & 63) << 8 * b;
        high |= (uint64_t)((32 + from + b - to) & 63) << 8 * b;
    }
    __m512i select = _mm512_set1_epi64((long long)(high << 32 | low));
    return (lanes_u)_mm512_multishift_epi64_epi8(select, (__m512i)v) & 0x01010101u << to;
}

/* Each byte of v, below 16, replaced by table[byte]. */
INLINE lanes_u lanes_lookup(lanes_u v, const uint8_t table[16]) {
    __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    return (lanes_u)_mm512_shuffle_epi8(t, (__m512i)v);
}

/* The dword `index` of a table, in each lane. */
INLINE lanes_u lanes_gather(const uint8_t *table, lanes_u index) {
    return (lanes_u)_mm512_i32gather_epi32((__m512i)index, table, 4);
}

/* ---- 16 floats ---- */
struct f16x { __m512 v; };

INLINE struct f16x f16x_zero(void) { return (struct f16x){_mm512_setzero_ps()}; }
INLINE struct f16x f16x_load(const float *p) { return (struct f16x){_mm512_loadu_ps(p)}; }
INLINE void f16x_store(float *p, struct f16x a) { _mm512_storeu_ps(p, a.v); }
INLINE struct f16x f16x_fma(struct f16x a, struct f16x b, struct f16x c) {
    return (struct f16x){_mm512_fmadd_ps(a.v, b.v, c.v)};
}
INLINE struct f16x f16x_half(const uint8_t *p) {
    return (struct f16x){_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p))};
}
INLINE struct f16x f16x_bf16(const uint8_t *p) {
    __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (struct f16x){_mm512_castsi512_ps(_mm512_slli_epi32(v, 16))};
}
/* ((l, l+8), (l, l+4), (l, l+2), (l, l+1)) */
INLINE float f16x_sum(struct f16x a) {
    __m256 s = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* Of 16 of them, `stride` floats apart; the same additions, each for several of them at once. */
INLINE struct f16x f16x_sums(const float *p, size_t stride) {
    __m512 half[8], quarter[4], pair[2];
    for (int i = 0; i < 8; i++) {
        const float *from = p + (size_t)(i / 2 + 8 * (i % 2)) * stride;
        __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + 4 * stride);
        half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    for (int i = 0; i < 4; i++) {
        __m512 a = half[2 * i], b = half[2 * i + 1]; /* of i, i + 4 and i + 8, i + 12 */
        quarter[i] =
            _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    for (int i = 0; i < 2; i++) {
        __m512d a = _mm512_castps_pd(quarter[2 * i]), b = _mm512_castps_pd(quarter[2 * i + 1]);
        pair[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                                _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    return (struct f16x){_mm512_add_ps(_mm512_shuffle_ps(pair[0], pair[1], 0x88),
                                       _mm512_shuffle_ps(pair[0], pair[1], 0xdd))};
}

/* Rows and tokens whose sums fit the registers. */
enum { FLOAT_ROWS = 4, FLOAT_TOKENS = 6 };

#endif
