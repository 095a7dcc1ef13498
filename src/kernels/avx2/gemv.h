/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.h: what body/gemv.h asks for, but the products, in vectors of 256 bits: a `dots` has the
 * sums over four codes each, in order, so a pair's 128 bits are of one half of 32 codes. */
#ifndef KERNELS_AVX2_GEMV_H
#define KERNELS_AVX2_GEMV_H

#include "kernels/avx2/lanes.h"

typedef __m256i codes;
typedef __m256i dots;

/* ---- sums across ---- */

INLINE dots pair(dots a, dots b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
INLINE __m256i quad(dots ab, dots cd) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}
INLINE void across16(const dots p[4], lanes_i s[2]) {
    __m256i low = quad(p[0], p[1]), high = quad(p[2], p[3]);
    s[0] = (lanes_i)_mm256_permute2x128_si256(low, high, 0x20);
    s[1] = (lanes_i)_mm256_permute2x128_si256(low, high, 0x31);
}
INLINE lanes_i across32(const dots p[4]) {
    lanes_i s[2];
    across16(p, s);
    return s[0] + s[1];
}

/* ---- codes ---- */

INLINE codes codes_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE codes codes_or(codes a, codes b) { return _mm256_or_si256(a, b); }
INLINE codes codes_nibbles(const uint8_t *p) {
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    v = _mm256_srlv_epi32(v, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
INLINE codes codes_looked_up(const uint8_t *p, const uint8_t value[16]) {
    __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)value));
    return _mm256_shuffle_epi8(table, codes_nibbles(p));
}
INLINE codes codes_int8(const int8_t *p) {
    return _mm256_xor_si256(codes_load(p), _mm256_set1_epi8((char)0x80));
}
INLINE codes codes_fifth_bits(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte);
    v = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);
    return _mm256_and_si256(v, _mm256_set1_epi8(16));
}
INLINE codes codes_bits(codes v, const int from, const int to, const int mask) {
    v = from < to ? _mm256_slli_epi16(v, to - from) : _mm256_srli_epi16(v, from - to);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

#endif
