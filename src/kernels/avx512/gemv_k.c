/* SPDX-License-Identifier: Apache-2.0
 * gemv_k.c: one token's products of formats with 256 weights a block; gemv_inline.h has the method,
 * quant/<fmt>.h the layouts. */
#include "kernels/avx512/gemv_inline.h"
#include "quant/iq4_xs.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

/* ---- Q4_K, and Q5_K with its scales ---- */

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

/* Both nibbles of 64 bytes: sub-blocks 4 g and 4 g + 2, and 4 g + 1 and 4 g + 3. */
struct nibbles {
    __m512i low, high;
};

INLINE struct nibbles codes_q4_k(const uint8_t *block, const uint32_t g) {
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512i v = _mm512_loadu_si512(block + offsetof(struct q4_k_block, qs) + 64 * g);
    return (struct nibbles){_mm512_and_si512(v, nibble),
                            _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble)};
}

/* The fifth bits of those sub-blocks go to bit 4: to the left with g = 0, to the right with 1. */
INLINE struct nibbles codes_q5_k(const uint8_t *block, const uint32_t g) {
    const __m512i nibble = _mm512_set1_epi8(15), fifth = _mm512_set1_epi8(16);
    const __m512i left[2] = {_mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1),
                             _mm512_inserti64x4(_mm512_set1_epi16(3), _mm256_set1_epi16(1), 1)};
    const __m512i right[2] = {_mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1),
                              _mm512_inserti64x4(_mm512_set1_epi16(1), _mm256_set1_epi16(3), 1)};
    __m512i v = _mm512_loadu_si512(block + offsetof(struct q5_k_block, qs) + 64 * g);
    __m512i t = _mm512_broadcast_i64x4(
        _mm256_loadu_si256((const __m256i *)(block + offsetof(struct q5_k_block, qh))));
    __m512i low = g == 0 ? _mm512_sllv_epi16(t, left[0]) : _mm512_srlv_epi16(t, right[0]);
    __m512i high = g == 0 ? _mm512_sllv_epi16(t, left[1]) : _mm512_srlv_epi16(t, right[1]);
    return (struct nibbles){
        _mm512_or_si512(_mm512_and_si512(v, nibble), _mm512_and_si512(low, fifth)),
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(v, 4), nibble),
                        _mm512_and_si512(high, fifth))};
}

/* `ahead`: where in a block lines are fetched ahead with each 128 weights, ended by 0. */
INLINE void gemv_nibbles(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                         bool first, float *y, const size_t bytes, const size_t ahead[2][2],
                         struct nibbles (*const codes)(const uint8_t *, const uint32_t)) {
    const __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * bytes;
            struct scales scales = scales_q4_k(block, row);
            UNROLL for (uint32_t g = 0; g < 2; g++) { /* 128 weights in 64 bytes */
                __m512i low = apart(x->q + 256 * b + 128 * g),
                        high = apart(x->q + 256 * b + 128 * g + 32);
                __m512i p[2][8], s[2][2];
                UNROLL for (int r = 0; r < 8; r++) {
                    struct nibbles v[2];
                    UNROLL for (int i = 0; i < 2; i++) {
                        const uint8_t *c = block + (size_t)(2 * r + i) * stride;
                        fetch_ahead(c + ahead[g][0], stride);
                        if (ahead[g][1]) fetch_ahead(c + ahead[g][1], stride);
                        v[i] = codes(c, g);
                    }
                    p[0][r] = pair(dot(v[0].low, low), dot(v[1].low, low));
                    p[1][r] = pair(dot(v[0].high, high), dot(v[1].high, high));
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

void gemv_q4_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const size_t ahead[2][2] = {{16}, {80}};
    gemv_nibbles(w, stride, blocks, x, first, y, sizeof(struct q4_k_block), ahead, codes_q4_k);
}

void gemv_q5_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const size_t ahead[2][2] = {{0, 64}, {96}};
    gemv_nibbles(w, stride, blocks, x, first, y, sizeof(struct q5_k_block), ahead, codes_q5_k);
}

/* ---- IQ4_XS: the nibbles of 16 bytes are a sub-block's, as in gemv_32.c ---- */

void gemv_iq4_xs_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                        bool first, float *y) {
    const __m512i nibble = _mm512_set1_epi8(15), row = row_offsets(stride);
    const __m512i value =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)iq4_nl_value));
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * sizeof(struct iq4_xs_block);
            __m512i head = words(block, row), scales_l = words(block + 4, row);
            __m512 d = half_low(head);
            UNROLL for (uint32_t g = 0; g < 2; g++) { /* 128 weights */
                __m512i q0 = _mm512_loadu_si512(x->q + 256 * b + 128 * g);
                __m512i q1 = _mm512_loadu_si512(x->q + 256 * b + 128 * g + 64);
                __m512i q_first = _mm512_shuffle_i32x4(q0, q1, 0x88);
                __m512i q_second = _mm512_shuffle_i32x4(q0, q1, 0xdd), p[8], s[4];
                UNROLL for (int r = 0; r < 8; r++) {
                    __m512i sum[2];
                    UNROLL for (int i = 0; i < 2; i++) {
                        const uint8_t *c = block + 8 + 64 * g + (size_t)(2 * r + i) * stride;
                        fetch_ahead(c, stride);
                        __m512i v = _mm512_loadu_si512(c);
                        __m512i v0 = _mm512_shuffle_epi8(value, _mm512_and_si512(v, nibble));
                        __m512i v1 = _mm512_shuffle_epi8(
                            value, _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
                        sum[i] = _mm512_dpbusd_epi32(dot(v0, q_first), v1, q_second);
                    }
                    p[r] = pair(sum[0], sum[1]);
                }
                across16(p, s);
                UNROLL for (uint32_t i = 0; i < 4; i++) {
                    uint32_t sub = 4 * g + i;
                    __m512i scale = _mm512_or_si512(
                        field(scales_l, 4 * sub, 15),
                        _mm512_slli_epi32(field(head, 16 + 2 * sub, 3), 4));
                    scale = _mm512_sub_epi32(scale, _mm512_set1_epi32(32));
                    acc = step(acc, s[i], x, 8 * b + sub, _mm512_mul_ps(d, to_float(scale)));
                }
            }
        }
        _mm512_storeu_ps(y, acc);
    }
}

/* ---- Q2_K and Q3_K: two bits g of the 64 bytes are weights 32 g.. and 128 + 32 g.. ---- */

struct q2 {
    __m512i q[4];       /* activations as those weights lie */
    __m512i s[4][4];    /* dot products of sub-blocks 2 g, 2 g + 1, 8 + 2 g, 9 + 2 g */
};

INLINE __m512i q2_sum(const struct q2 *k, uint32_t sub) {
    return k->s[sub / 2 % 4][sub / 8 * 2 + sub % 2];
}

INLINE void q2_activations(struct q2 *k, const int8_t *q) {
    UNROLL for (int g = 0; g < 4; g++) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(q + 32 * g));
        __m256i second = _mm256_loadu_si256((const __m256i *)(q + 128 + 32 * g));
        k->q[g] = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    }
}

/* `high`: of each row, third bits at bit 2 + g of a byte; NULL: none. */
INLINE void q2_dots(struct q2 *k, const uint8_t *qs, const uint8_t *high, size_t stride,
                    const size_t bytes) {
    const __m512i two = _mm512_set1_epi8(3), third = _mm512_set1_epi8(4);
    const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(2), _mm256_setzero_si256(), 1);
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    __m512i p[4][8];
    UNROLL for (int r = 0; r < 8; r++) {
        __m512i sum[4][2];
        UNROLL for (int i = 0; i < 2; i++) {
            size_t at = (size_t)(2 * r + i) * stride;
            __m512i v = _mm512_loadu_si512(qs + at), t = v;
            fetch_ahead(qs + at, stride);
            if (high) {
                fetch_ahead(qs + at + bytes - 64, stride);
                t = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(high + at)));
                t = _mm512_srlv_epi16(_mm512_sllv_epi16(t, left), right);
            }
            UNROLL for (uint32_t g = 0; g < 4; g++) {
                __m512i code = _mm512_and_si512(_mm512_srli_epi16(v, 2 * g), two);
                if (high)
                    code = _mm512_or_si512(code,
                                           _mm512_and_si512(_mm512_srli_epi16(t, g), third));
                sum[g][i] = dot(code, k->q[g]);
            }
        }
        UNROLL for (int g = 0; g < 4; g++) p[g][r] = pair(sum[g][0], sum[g][1]);
    }
    UNROLL for (int g = 0; g < 4; g++) across16(p[g], k->s[g]);
}

void gemv_q2_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * sizeof(struct q2_k_block);
            struct q2 k;
            q2_activations(&k, x->q + 256 * b);
            q2_dots(&k, block + 16, NULL, stride, sizeof(struct q2_k_block));
            __m512i head = words(block + 80, row);
            __m512 d = half_low(head), dmin = half_high(head);
            UNROLL for (uint32_t i = 0; i < 4; i++) {
                __m512i scales = words(block + 4 * i, row);
                UNROLL for (uint32_t j = 0; j < 4; j++) {
                    uint32_t sub = 4 * i + j;
                    acc = step(acc, q2_sum(&k, sub), x, 16 * b + sub,
                               _mm512_mul_ps(d, to_float(field(scales, 8 * j, 15))));
                    acc = step_min(acc, x, 16 * b + sub,
                                   _mm512_mul_ps(dmin, to_float(field(scales, 8 * j + 4, 15))));
                }
            }
        }
        _mm512_storeu_ps(y, acc);
    }
}

void gemv_q3_k_avx512(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                      bool first, float *y) {
    const __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * sizeof(struct q3_k_block);
            struct q2 k;
            q2_activations(&k, x->q + 256 * b);
            q2_dots(&k, block + 32, block, stride, sizeof(struct q3_k_block));
            __m512 d = half_high(words(block + 106, row)); /* not past the last row's end */
            __m512i word[3] = {words(block + 96, row), words(block + 100, row),
                               words(block + 104, row)};
            UNROLL for (uint32_t sub = 0; sub < 16; sub++) {
                __m512i low = field(word[sub / 4 % 2], 8 * (sub % 4) + sub / 8 * 4, 15);
                __m512i top = field(word[2], 8 * (sub % 4) + sub / 4 * 2, 3);
                __m512i scale = _mm512_or_si512(low, _mm512_slli_epi32(top, 4));
                scale = _mm512_sub_epi32(scale, _mm512_set1_epi32(32));
                acc = step(acc, q2_sum(&k, sub), x, 16 * b + sub,
                           _mm512_mul_ps(d, to_float(scale)));
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
