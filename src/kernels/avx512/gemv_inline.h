/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_inline.h: one token's products, sixteen rows at a time: vpdpbusd takes 64 codes of one row,
 * and the sums of the sixteen rows are then added across, so that each sub-block's dot products lie
 * in one vector, a row a lane. That is integer arithmetic, exact in any order; the float chain of a
 * row runs in its lane as in linear.c.
 *
 * Shuffles are the limit: two a row and 64 codes. Where the two nibbles of a byte are of one
 * sub-block, or can be paired with activations so that they are, their products go into one
 * register first, which halves that. */
#ifndef KERNELS_AVX512_GEMV_INLINE_H
#define KERNELS_AVX512_GEMV_INLINE_H

#include <immintrin.h>

#include "kernels/avx512/gemv.h"
#include "kernels/body/inline.h"

enum { ROWS = 16, HALVES = TILE_ROWS / ROWS };

/* ---- sums across ---- */

INLINE __m512i dot(__m512i code, __m512i q) {
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), code, q);
}

/* Of two rows: 128 bits [a0+a2, b0+b2, a1+a3, b1+b3]. */
INLINE __m512i pair(__m512i a, __m512i b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

/* Of two pairs: 128 bits [a, b, c, d], each the sum over 16 codes. */
INLINE __m512i quad(__m512i ab, __m512i cd) {
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* From the pairs of 16 rows to the dot products of the four sub-blocks of 16 in 64 codes. */
INLINE void across16(const __m512i p[8], __m512i s[4]) {
    __m512i q0 = quad(p[0], p[1]), q1 = quad(p[2], p[3]), q2 = quad(p[4], p[5]),
            q3 = quad(p[6], p[7]);
    __m512i low01 = _mm512_shuffle_i32x4(q0, q1, 0x44), low23 = _mm512_shuffle_i32x4(q2, q3, 0x44);
    __m512i high01 = _mm512_shuffle_i32x4(q0, q1, 0xee),
            high23 = _mm512_shuffle_i32x4(q2, q3, 0xee);
    s[0] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    s[1] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    s[2] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    s[3] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
}

/* The same for the two sub-blocks of 32. */
INLINE void across32(const __m512i p[8], __m512i s[2]) {
    __m512i q0 = quad(p[0], p[1]), q1 = quad(p[2], p[3]), q2 = quad(p[4], p[5]),
            q3 = quad(p[6], p[7]);
    __m512i a =
        _mm512_add_epi32(_mm512_shuffle_i32x4(q0, q1, 0x88), _mm512_shuffle_i32x4(q0, q1, 0xdd));
    __m512i b =
        _mm512_add_epi32(_mm512_shuffle_i32x4(q2, q3, 0x88), _mm512_shuffle_i32x4(q2, q3, 0xdd));
    s[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    s[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
}

/* ---- one sub-block of 16 rows ---- */

INLINE __m512 step(__m512 acc, __m512i sum, const struct tile_act *x, uint32_t s, __m512 scale) {
    __m512 biased = _mm512_castsi512_ps(_mm512_add_epi32(sum, _mm512_set1_epi32(x->start[s])));
    __m512 v = _mm512_fmadd_ps(biased, _mm512_set1_ps(x->d[s]), _mm512_set1_ps(x->bias[s]));
    return _mm512_fmadd_ps(v, scale, acc);
}

INLINE __m512 step_min(__m512 acc, const struct tile_act *x, uint32_t s, __m512 min) {
    return _mm512_fmadd_ps(_mm512_set1_ps(x->sum[s]), min, acc);
}

/* ---- bytes of 16 rows ---- */

/* The four bytes at p of each row. */
INLINE __m512i words(const uint8_t *p, __m512i row) { return _mm512_i32gather_epi32(row, p, 1); }

INLINE __m512i row_offsets(size_t stride) {
    return _mm512_mullo_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        _mm512_set1_epi32((int32_t)stride));
}

INLINE __m512 half_low(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE __m512 half_high(__m512i v) { return half_low(_mm512_srli_epi32(v, 16)); }
INLINE __m512 to_float(__m512i v) { return _mm512_cvtepi32_ps(v); }

/* The same place in the next tile of rows: what is wanted about a tile's time later. Fetching that
 * tile in the order of memory is slower (docs/performance.md). */
INLINE void fetch_ahead(const uint8_t *p, size_t stride) {
    _mm_prefetch((const char *)p + TILE_ROWS * stride, _MM_HINT_T0);
}

#endif
