/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.h: the few operations that body/linear_unpack.h needs beyond the compiler's vector
 * arithmetic, for 16 rows at a time. */
#ifndef KERNELS_AVX512_LANES_H
#define KERNELS_AVX512_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

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

#endif
