/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_256.h: one token's products for ISAs with vectors of 256 bits, straight from the rows of a
 * tile: unpacking into tile order pays only when several tokens share it. Eight rows at a time: a
 * dot product takes 32 codes of one row, and the sums of eight rows are then added across, so that
 * a sub-block's lie in one vector, a row a lane. That is integer arithmetic, exact in any order;
 * the float chain of a row runs in its lane, so the bits are those of unpack and mul.
 *
 * The includer brings, beside its lanes.h and linear_unpack.h,
 *     dot8(sum, code, q)   sum + products of 32 unsigned codes below 64 and int8, 4 to a dword
 *     dot8_wide            the same for codes of formats whose offset is TILE_SIGNED: less that,
 *                          if the ISA's act_pack leaves it out of `start` */
#ifndef KERNELS_BODY_GEMV_256_H
#define KERNELS_BODY_GEMV_256_H

#include "kernels/body/linear_unpack.h"

/* ---- sums across ---- */

INLINE __m256i pair(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
INLINE __m256i quad(__m256i ab, __m256i cd) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

/* From the pairs of 8 rows to the sums of the two halves of 16 codes. */
INLINE void across16(const __m256i p[4], __m256i s[2]) {
    __m256i low = quad(p[0], p[1]), high = quad(p[2], p[3]);
    s[0] = _mm256_permute2x128_si256(low, high, 0x20);
    s[1] = _mm256_permute2x128_si256(low, high, 0x31);
}
INLINE __m256i across32(const __m256i p[4]) {
    __m256i s[2];
    across16(p, s);
    return _mm256_add_epi32(s[0], s[1]);
}

/* ---- codes of one row: the format's, block by block ---- */

INLINE __m256i load256(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

/* 16 bytes' low nibbles, then their high ones. */
INLINE __m256i nibbles(const uint8_t *p) {
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    v = _mm256_srlv_epi32(v, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
INLINE __m256i looked_up(const uint8_t *p, const uint8_t value[16]) {
    __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)value));
    return _mm256_shuffle_epi8(table, nibbles(p));
}
/* Bit i of the four bytes at p to bit 4 of byte i. */
INLINE __m256i fifth_bits(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte);
    v = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);
    return _mm256_and_si256(v, _mm256_set1_epi8(16));
}
/* Bits from `from` on of each byte to bit `to` on, those of `mask` kept. */
INLINE __m256i bits(__m256i v, const int from, const int to, const int mask) {
    v = from < to ? _mm256_slli_epi16(v, to - from) : _mm256_srli_epi16(v, from - to);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

typedef __m256i codes_fn(const uint8_t *block);
INLINE __m256i codes_q4_0(const uint8_t *b) { return nibbles(b + offsetof(struct q4_0_block, qs)); }
INLINE __m256i codes_q4_1(const uint8_t *b) { return nibbles(b + offsetof(struct q4_1_block, qs)); }
INLINE __m256i codes_q5_0(const uint8_t *b) {
    return _mm256_or_si256(nibbles(b + offsetof(struct q5_0_block, qs)),
                           fifth_bits(b + offsetof(struct q5_0_block, qh)));
}
INLINE __m256i codes_q5_1(const uint8_t *b) {
    return _mm256_or_si256(nibbles(b + offsetof(struct q5_1_block, qs)),
                           fifth_bits(b + offsetof(struct q5_1_block, qh)));
}
INLINE __m256i codes_q8_0(const uint8_t *b) {
    return _mm256_xor_si256(load256(b + offsetof(struct q8_0_block, qs)),
                            _mm256_set1_epi8((char)0x80));
}
INLINE __m256i codes_iq4_nl(const uint8_t *b) {
    return looked_up(b + offsetof(struct iq4_nl_block, qs), iq4_nl_value);
}
INLINE __m256i codes_mxfp4(const uint8_t *b) {
    return looked_up(b + offsetof(struct mxfp4_block, qs), mxfp4_value);
}

/* 32 codes of a block of 256, from 32 i on. */
typedef __m256i part_fn(const uint8_t *block, const int i);
INLINE __m256i part_iq4_xs(const uint8_t *b, const int i) {
    return looked_up(b + offsetof(struct iq4_xs_block, qs) + 16 * i, iq4_nl_value);
}
INLINE __m256i part_q4_k(const uint8_t *b, const int i) {
    return bits(load256(b + offsetof(struct q4_k_block, qs) + i / 2 * 32), i % 2 * 4, 0, 15);
}
INLINE __m256i part_q5_k(const uint8_t *b, const int i) {
    __m256i low = bits(load256(b + offsetof(struct q5_k_block, qs) + i / 2 * 32), i % 2 * 4, 0, 15);
    return _mm256_or_si256(low, bits(load256(b + offsetof(struct q5_k_block, qh)), i, 4, 16));
}
INLINE __m256i part_q6_k(const uint8_t *b, const int i) {
    __m256i low = load256(b + offsetof(struct q6_k_block, ql) + i / 4 * 64 + i % 2 * 32);
    __m256i high = load256(b + offsetof(struct q6_k_block, qh) + i / 4 * 32);
    return _mm256_or_si256(bits(low, i % 4 / 2 * 4, 0, 15), bits(high, i % 4 * 2, 4, 48));
}
INLINE __m256i part_q2_k(const uint8_t *b, const int i) {
    return bits(load256(b + offsetof(struct q2_k_block, qs) + i / 4 * 32), i % 4 * 2, 0, 3);
}
INLINE __m256i part_q3_k(const uint8_t *b, const int i) {
    __m256i low = load256(b + offsetof(struct q3_k_block, qs) + i / 4 * 32);
    __m256i high = load256(b + offsetof(struct q3_k_block, hmask));
    return _mm256_or_si256(bits(low, i % 4 * 2, 0, 3), bits(high, i, 2, 4));
}

/* ---- the float chain ---- */

struct chain {
    alignas(32) float scale[16][TILE_ROWS], min[16][TILE_ROWS]; /* of 8 rows each */
};

INLINE __m256 step(__m256 acc, __m256i sum, const struct tile_act *x, uint32_t s,
                   const float *scale, const float *min, const bool has_min) {
    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(x->start[s]));
    __m256 v = _mm256_fmadd_ps(_mm256_castsi256_ps(sum), _mm256_set1_ps(x->d[s]),
                               _mm256_set1_ps(x->bias[s]));
    acc = _mm256_fmadd_ps(v, _mm256_load_ps(scale), acc);
    return has_min ? _mm256_fmadd_ps(_mm256_set1_ps(x->sum[s]), _mm256_load_ps(min), acc) : acc;
}

/* The same place in the next tile of rows. */
INLINE void fetch_ahead(const uint8_t *p, size_t stride) {
    __builtin_prefetch(p + TILE_ROWS * stride);
}

typedef __m256i dot_fn(__m256i sum, __m256i code, __m256i q);

INLINE void gemv_32(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                    bool first, float *y, const size_t bytes, const bool has_min,
                    block_unpack *const scales, codes_fn *const codes, dot_fn *const dot) {
    struct chain k;
    struct place to = {NULL, k.scale[0], k.min[0]};
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES, w += LANES * stride, y += LANES) {
        __m256 acc = first ? _mm256_setzero_ps() : _mm256_loadu_ps(y);
        for (uint32_t i = 0; i < blocks; i++) {
            const uint8_t *block = w + i * bytes;
            __m256i q = load256(x->q + 32 * i), p[4];
            scales(block, stride, to);
            UNROLL for (int j = 0; j < 4; j++) {
                __m256i sum[2];
                UNROLL for (int n = 0; n < 2; n++) {
                    const uint8_t *b = block + (size_t)(2 * j + n) * stride;
                    fetch_ahead(b, stride);
                    sum[n] = dot(_mm256_setzero_si256(), codes(b), q);
                }
                p[j] = pair(sum[0], sum[1]);
            }
            acc = step(acc, across32(p), x, i, k.scale[0], k.min[0], has_min);
        }
        _mm256_storeu_ps(y, acc);
    }
}

INLINE void gemv_k(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                   bool first, float *y, const size_t bytes, const uint32_t sub, const bool has_min,
                   block_unpack *const scales, part_fn *const part, dot_fn *const dot) {
    struct chain k;
    struct place to = {NULL, k.scale[0], k.min[0]};
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES, w += LANES * stride, y += LANES) {
        __m256 acc = first ? _mm256_setzero_ps() : _mm256_loadu_ps(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * bytes;
            uint32_t s = b * (256 / sub);
            scales(block, stride, to);
            UNROLL for (int i = 0; i < 8; i++) {
                __m256i q = load256(x->q + 256 * b + 32 * i), p[4], sums[2];
                UNROLL for (int j = 0; j < 4; j++) {
                    __m256i sum[2];
                    UNROLL for (int n = 0; n < 2; n++) {
                        const uint8_t *row = block + (size_t)(2 * j + n) * stride;
                        if (64 * (size_t)i < bytes) fetch_ahead(row + 64 * i, stride);
                        sum[n] = dot(_mm256_setzero_si256(), part(row, i), q);
                    }
                    p[j] = pair(sum[0], sum[1]);
                }
                if (sub == 32) {
                    acc = step(acc, across32(p), x, s + i, k.scale[i], k.min[i], has_min);
                    continue;
                }
                across16(p, sums);
                UNROLL for (int n = 0; n < 2; n++) acc =
                    step(acc, sums[n], x, s + 2 * i + n, k.scale[2 * i + n], k.min[2 * i + n],
                         has_min);
            }
        }
        _mm256_storeu_ps(y, acc);
    }
}

/* ---- the table ---- */
#define GEMV_32(fmt, has_min, scales, dot)                                                      \
    static void gemv_##fmt(const uint8_t *w, size_t stride, uint32_t blocks,                    \
                           const struct tile_act *x, bool first, float *y) {                    \
        gemv_32(w, stride, blocks, x, first, y, sizeof(struct fmt##_block), has_min, scales,    \
                codes_##fmt, dot);                                                              \
    }
#define GEMV_K(fmt, FMT, has_min, scales, dot)                                                  \
    static void gemv_##fmt(const uint8_t *w, size_t stride, uint32_t blocks,                    \
                           const struct tile_act *x, bool first, float *y) {                    \
        gemv_k(w, stride, blocks, x, first, y, sizeof(struct fmt##_block), FMT##_SUB, has_min,  \
               scales, part_##fmt, dot);                                                        \
    }
GEMV_32(q4_0, false, half_scale, dot8)
GEMV_32(q4_1, true, half_scale_offset, dot8)
GEMV_32(q5_0, false, half_scale, dot8)
GEMV_32(q5_1, true, half_scale_offset, dot8)
GEMV_32(q8_0, false, half_scale, dot8_wide)
GEMV_32(iq4_nl, false, half_scale, dot8_wide)
GEMV_32(mxfp4, false, scales_mxfp4, dot8_wide)
GEMV_K(q2_k, Q2_K, true, scales_q2_k, dot8)
GEMV_K(q3_k, Q3_K, false, scales_q3_k, dot8)
GEMV_K(q4_k, Q4_K, true, scales_q4_k, dot8)
GEMV_K(q5_k, Q5_K, true, scales_q4_k, dot8)
GEMV_K(q6_k, Q6_K, false, scales_q6_k, dot8)
GEMV_K(iq4_xs, IQ4_XS, false, scales_iq4_xs, dot8_wide)
#undef GEMV_32
#undef GEMV_K

#define TILE_GEMV                                                                               \
    {                                                                                           \
        [QUANT_q4_0] = gemv_q4_0, [QUANT_q4_1] = gemv_q4_1, [QUANT_q5_0] = gemv_q5_0,           \
        [QUANT_q5_1] = gemv_q5_1, [QUANT_q8_0] = gemv_q8_0, [QUANT_q2_k] = gemv_q2_k,           \
        [QUANT_q3_k] = gemv_q3_k, [QUANT_q4_k] = gemv_q4_k, [QUANT_q5_k] = gemv_q5_k,           \
        [QUANT_q6_k] = gemv_q6_k, [QUANT_iq4_nl] = gemv_iq4_nl, [QUANT_iq4_xs] = gemv_iq4_xs,   \
        [QUANT_mxfp4] = gemv_mxfp4                                                              \
    }

#endif
