/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.c: see gemv.h. Sixteen rows at a time: vpdpbusd takes 64 codes of one row, and the sums of
 * the sixteen rows are then added across, so that each sub-block's dot products lie in one vector,
 * a row a lane. That is integer arithmetic, exact in any order; the float chain of a row runs in
 * its lane as in linear.c.
 *
 * Shuffles are the limit: two a row and 64 codes. */
#include "kernels/avx512/gemv.h"

#include <immintrin.h>

#include "kernels/body/inline.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

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

/* The same place in the next tile of rows: what is wanted about a tile's time later. */
INLINE void fetch_ahead(const uint8_t *p, size_t stride) {
    _mm_prefetch((const char *)p + TILE_ROWS * stride, _MM_HINT_T0);
}

/* ---- formats of 32 weights a block: two blocks are 64 codes ---- */

INLINE __m512i codes_q8_0(const uint8_t *a, const uint8_t *b) {
    __m256i low = _mm256_loadu_si256((const __m256i *)(a + 2));
    __m256i high = _mm256_loadu_si256((const __m256i *)(b + 2));
    __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_xor_si512(q, _mm512_set1_epi8((char)0x80));
}

INLINE __m512i codes_q5_0(const uint8_t *a, const uint8_t *b) {
    uint32_t bits_a, bits_b;
    memcpy(&bits_a, a + 2, 4);
    memcpy(&bits_b, b + 2, 4);
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(a + 6)));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(b + 6)));
    __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    q = _mm512_srlv_epi32(q, _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4));
    q = _mm512_and_si512(q, _mm512_set1_epi8(15));
    return _mm512_mask_add_epi8(q, _cvtu64_mask64((uint64_t)bits_b << 32 | bits_a), q,
                                _mm512_set1_epi8(16));
}

/* `b` is `a` when the last block is alone: its sums are not used. */
INLINE void gemv_blocks(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                        bool first, float *y, size_t bytes,
                        __m512i (*const codes)(const uint8_t *, const uint8_t *)) {
    __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t i = 0; i < blocks; i += 2) {
            const uint8_t *a = w + i * bytes;
            size_t next = i + 1 < blocks ? bytes : 0;
            __m512i q = _mm512_loadu_si512(x->q + 32 * i), p[8], s[2];
            UNROLL for (int r = 0; r < 8; r++) {
                const uint8_t *a0 = a + (size_t)(2 * r) * stride, *a1 = a0 + stride;
                fetch_ahead(a0, stride);
                fetch_ahead(a1, stride);
                p[r] = pair(dot(codes(a0, a0 + next), q), dot(codes(a1, a1 + next), q));
            }
            across32(p, s);
            acc = step(acc, s[0], x, i, half_low(words(a, row)));
            if (next) acc = step(acc, s[1], x, i + 1, half_low(words(a + bytes, row)));
        }
        _mm512_storeu_ps(y, acc);
    }
}

void gemv_q5_0_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    gemv_blocks(w, stride, blocks, x, first, y, sizeof(struct q5_0_block), codes_q5_0);
}
void gemv_q8_0_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    gemv_blocks(w, stride, blocks, x, first, y, sizeof(struct q8_0_block), codes_q8_0);
}

/* ---- Q4_K ---- */

struct scales {
    __m512 d, dmin;
    __m512i word[3]; /* the 12 bytes of scales and mins */
};

INLINE struct scales scales_q4_k(const uint8_t *w, __m512i row) {
    __m512i d = words(w, row);
    return (struct scales){
        half_low(d), half_high(d), {words(w + 4, row), words(w + 8, row), words(w + 12, row)}};
}

INLINE __m512i field(__m512i v, uint32_t shift, int mask) {
    return _mm512_and_si512(_mm512_srli_epi32(v, shift), _mm512_set1_epi32(mask));
}

/* Sub-block s; q4_k.h has the layout. */
INLINE __m512 finish_q4_k(__m512 acc, __m512i sum, const struct tile_act *x, uint32_t base,
                          const struct scales *k, const uint32_t s) {
    uint32_t byte = 8 * (s & 3);
    __m512i sc, m;
    if (s < 4) {
        sc = field(k->word[0], byte, 63);
        m = field(k->word[1], byte, 63);
    } else {
        sc = _mm512_or_si512(field(k->word[2], byte, 15),
                             _mm512_slli_epi32(field(k->word[0], byte + 6, 3), 4));
        m = _mm512_or_si512(field(k->word[2], byte + 4, 15),
                            _mm512_slli_epi32(field(k->word[1], byte + 6, 3), 4));
    }
    acc = step(acc, sum, x, base + s, _mm512_mul_ps(k->d, to_float(sc)));
    return step_min(acc, x, base + s, _mm512_mul_ps(k->dmin, to_float(m)));
}

/* 32 activations at p and 32 at p + 64, as the nibbles of 64 bytes of codes lie. */
INLINE __m512i apart(const int8_t *p) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)),
                              _mm256_loadu_si256((const __m256i *)(p + 64)), 1);
}

void gemv_q4_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const __m512i nibble = _mm512_set1_epi8(15), row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * sizeof(struct q4_k_block);
            struct scales scales = scales_q4_k(block, row);
            UNROLL for (uint32_t g = 0; g < 2; g++) { /* 128 weights in 64 bytes */
                __m512i low = apart(x->q + 256 * b + 128 * g),
                        high = apart(x->q + 256 * b + 128 * g + 32);
                __m512i p[2][8], s[2][2];
                UNROLL for (int r = 0; r < 8; r++) {
                    const uint8_t *c0 = block + 16 + 64 * g + (size_t)(2 * r) * stride,
                                  *c1 = c0 + stride;
                    fetch_ahead(c0, stride);
                    fetch_ahead(c1, stride);
                    __m512i v0 = _mm512_loadu_si512(c0), v1 = _mm512_loadu_si512(c1);
                    p[0][r] = pair(dot(_mm512_and_si512(v0, nibble), low),
                                   dot(_mm512_and_si512(v1, nibble), low));
                    v0 = _mm512_and_si512(_mm512_srli_epi16(v0, 4), nibble);
                    v1 = _mm512_and_si512(_mm512_srli_epi16(v1, 4), nibble);
                    p[1][r] = pair(dot(v0, high), dot(v1, high));
                }
                across32(p[0], s[0]);
                across32(p[1], s[1]);
                UNROLL for (uint32_t i = 0; i < 4; i++) acc =
                    finish_q4_k(acc, s[i % 2][i / 2], x, 8 * b, &scales, 4 * g + i);
            }
        }
        _mm512_storeu_ps(y, acc);
    }
}

/* ---- Q6_K ---- */

void gemv_q6_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const __m512i nibble = _mm512_set1_epi8(15), pair_of_bits = _mm512_set1_epi8(0x30);
    const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * sizeof(struct q6_k_block);
            __m512 d = half_high(words(block + 206, row)); /* not past the last row's end */
            UNROLL for (uint32_t h = 0; h < 2; h++) {      /* 128 weights */
                __m512i q0 = _mm512_loadu_si512(x->q + 256 * b + 128 * h);
                __m512i q1 = _mm512_loadu_si512(x->q + 256 * b + 128 * h + 64);
                __m512i p[2][8], s[8];
                UNROLL for (int r = 0; r < 8; r++) {
                    __m512i v[2][2];
                    UNROLL for (int i = 0; i < 2; i++) {
                        const uint8_t *c = block + (size_t)(2 * r + i) * stride;
                        fetch_ahead(c + 64 * h, stride);
                        __m512i l = _mm512_loadu_si512(c + 64 * h);
                        __m512i t = _mm512_broadcast_i64x4(
                            _mm256_loadu_si256((const __m256i *)(c + 128 + 32 * h)));
                        v[0][i] = dot(_mm512_or_si512(_mm512_and_si512(l, nibble),
                                                      _mm512_and_si512(_mm512_sllv_epi16(t, left),
                                                                       pair_of_bits)),
                                      q0);
                        v[1][i] =
                            dot(_mm512_or_si512(
                                    _mm512_and_si512(_mm512_srli_epi16(l, 4), nibble),
                                    _mm512_and_si512(_mm512_srlv_epi16(t, right), pair_of_bits)),
                                q1);
                    }
                    p[0][r] = pair(v[0][0], v[0][1]);
                    p[1][r] = pair(v[1][0], v[1][1]);
                }
                across16(p[0], s);
                across16(p[1], s + 4);
                __m512i scale[2] = {words(block + 192 + 8 * h, row),
                                    words(block + 196 + 8 * h, row)};
                UNROLL for (uint32_t i = 0; i < 8; i++) {
                    __m512i sc =
                        _mm512_srai_epi32(_mm512_slli_epi32(scale[i / 4], 24 - 8 * (i % 4)), 24);
                    acc = step(acc, s[i], x, 16 * b + 8 * h + i, _mm512_mul_ps(d, to_float(sc)));
                }
            }
        }
        _mm512_storeu_ps(y, acc);
    }
}
