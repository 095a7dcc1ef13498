/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_32.c: one token's products of formats with 32 weights a block, four blocks at a time: the
 * first halves of their codes lie in one register, the second halves in another, so that 128 bits
 * of the summed products are one block's. gemv_inline.h has the rest of the method, quant/<fmt>.h
 * the layouts. */
#include "kernels/avx512/gemv_inline.h"
#include "quant/iq4_nl.h"
#include "quant/mxfp4.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"

/* Codes of four blocks, which are all the first if it is alone. */
struct halves {
    __m512i first, second;
};
typedef struct halves codes_fn(const uint8_t *const block[4]);
/* From the first four bytes of a block. */
struct factors {
    __m512 scale, min;
};
typedef struct factors factors_fn(__m512i word);

/* 16 bytes at `at` in each block; as masked broadcasts, which are no shuffles. */
INLINE __m512i sixteens(const uint8_t *const block[4], const size_t at) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(block[0] + at)));
    UNROLL for (int i = 1; i < 4; i++) v = _mm512_mask_broadcast_i32x4(
        v, (__mmask16)(0xf << 4 * i), _mm_loadu_si128((const __m128i *)(block[i] + at)));
    return v;
}

INLINE struct halves nibbles(__m512i v) {
    const __m512i nibble = _mm512_set1_epi8(15);
    return (struct halves){_mm512_and_si512(v, nibble),
                           _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble)};
}

INLINE struct halves looked_up(__m512i v, const uint8_t value[16]) {
    __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)value));
    struct halves h = nibbles(v);
    return (struct halves){_mm512_shuffle_epi8(table, h.first),
                           _mm512_shuffle_epi8(table, h.second)};
}

INLINE struct halves codes_q4_0(const uint8_t *const block[4]) {
    return nibbles(sixteens(block, offsetof(struct q4_0_block, qs)));
}
INLINE struct halves codes_q4_1(const uint8_t *const block[4]) {
    return nibbles(sixteens(block, offsetof(struct q4_1_block, qs)));
}
INLINE struct halves codes_iq4_nl(const uint8_t *const block[4]) {
    return looked_up(sixteens(block, offsetof(struct iq4_nl_block, qs)), iq4_nl_value);
}
INLINE struct halves codes_mxfp4(const uint8_t *const block[4]) {
    return looked_up(sixteens(block, offsetof(struct mxfp4_block, qs)), mxfp4_value);
}

/* Codes with their fifth bits, bit i of the four bytes at `high` that of weight i: a window of 8
 * bits for each code puts its bit at 4. */
INLINE struct halves codes_5(const uint8_t *const block[4], const size_t high, const size_t at) {
    const __m512i window[2] = {
        _mm512_set4_epi32(0x0b0a0908, 0x07060504, 0x03020100, 0x3f3e3d3c),
        _mm512_set4_epi32(0x1b1a1918, 0x17161514, 0x13121110, 0x0f0e0d0c)};
    const __m512i sixteen = _mm512_set1_epi8(16);
    enum { OR_AND = 0xf8 }; /* a | (b & c) */
    struct halves h = nibbles(sixteens(block, at));
    __m512i bits = _mm512_broadcastd_epi32(_mm_loadu_si32(block[0] + high));
    UNROLL for (int i = 1; i < 4; i++) bits = _mm512_mask_broadcastd_epi32(
        bits, (__mmask16)(0xf << 4 * i), _mm_loadu_si32(block[i] + high));
    h.first = _mm512_ternarylogic_epi64(
        h.first, _mm512_multishift_epi64_epi8(window[0], bits), sixteen, OR_AND);
    h.second = _mm512_ternarylogic_epi64(
        h.second, _mm512_multishift_epi64_epi8(window[1], bits), sixteen, OR_AND);
    return h;
}
INLINE struct halves codes_q5_0(const uint8_t *const block[4]) {
    return codes_5(block, offsetof(struct q5_0_block, qh), offsetof(struct q5_0_block, qs));
}
INLINE struct halves codes_q5_1(const uint8_t *const block[4]) {
    return codes_5(block, offsetof(struct q5_1_block, qh), offsetof(struct q5_1_block, qs));
}

INLINE struct halves codes_q8_0(const uint8_t *const block[4]) {
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    size_t at = offsetof(struct q8_0_block, qs);
    return (struct halves){_mm512_xor_si512(sixteens(block, at), sign),
                           _mm512_xor_si512(sixteens(block, at + 16), sign)};
}

INLINE struct factors half_scale(__m512i word) {
    return (struct factors){.scale = half_low(word)};
}
INLINE struct factors half_scale_offset(__m512i word) { /* an offset is a negative min */
    return (struct factors){half_low(word), _mm512_xor_ps(half_high(word), _mm512_set1_ps(-0.0f))};
}
INLINE struct factors power_of_two(__m512i word) { /* mxfp4_scale() */
    __m512i e = _mm512_and_si512(word, _mm512_set1_epi32(0xff));
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i denormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __mmask16 small = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    return (struct factors){
        .scale = _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, small, denormal))};
}

INLINE void gemv(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                 bool first, float *y, const size_t bytes, const bool has_min,
                 codes_fn *const codes, factors_fn *const factors) {
    const __m512i row = row_offsets(stride);
    for (uint32_t half = 0; half < HALVES; half++, w += ROWS * stride, y += ROWS) {
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        for (uint32_t i = 0; i < blocks; i += 4) {
            const uint8_t *at = w + i * bytes;
            uint32_t some = blocks - i < 4 ? blocks - i : 4;
            __m512i q0 = _mm512_loadu_si512(x->q + 32 * i);
            __m512i q1 = _mm512_loadu_si512(x->q + 32 * i + 64);
            __m512i q_first = _mm512_shuffle_i32x4(q0, q1, 0x88);
            __m512i q_second = _mm512_shuffle_i32x4(q0, q1, 0xdd), p[8], s[4];
            UNROLL for (int r = 0; r < 8; r++) {
                __m512i sum[2];
                UNROLL for (int k = 0; k < 2; k++) {
                    const uint8_t *b = at + (size_t)(2 * r + k) * stride;
                    fetch_ahead(b, stride);
                    if (bytes > 24) fetch_ahead(b + 64, stride);
                    struct halves c =
                        codes((const uint8_t *[4]){b, b + (some > 1 ? bytes : 0),
                                                   b + (some > 2 ? 2 * bytes : 0),
                                                   b + (some > 3 ? 3 * bytes : 0)});
                    sum[k] = _mm512_dpbusd_epi32(dot(c.first, q_first), c.second, q_second);
                }
                p[r] = pair(sum[0], sum[1]);
            }
            across16(p, s);
            UNROLL for (uint32_t j = 0; j < 4; j++) {
                if (j < some) {
                    struct factors f = factors(words(at + j * bytes, row));
                    acc = step(acc, s[j], x, i + j, f.scale);
                    if (has_min) acc = step_min(acc, x, i + j, f.min);
                }
            }
        }
        _mm512_storeu_ps(y, acc);
    }
}

#define GEMV(fmt, has_min, factors)                                                             \
    void gemv_##fmt##_avx512(const uint8_t *w, size_t stride, uint32_t blocks,                  \
                             const struct tile_act *x, bool first, float *y) {                  \
        gemv(w, stride, blocks, x, first, y, sizeof(struct fmt##_block), has_min, codes_##fmt,  \
             factors);                                                                          \
    }
GEMV(q4_0, false, half_scale)
GEMV(q4_1, true, half_scale_offset)
GEMV(q5_0, false, half_scale)
GEMV(q5_1, true, half_scale_offset)
GEMV(q8_0, false, half_scale)
GEMV(iq4_nl, false, half_scale)
GEMV(mxfp4, false, power_of_two)
#undef GEMV
