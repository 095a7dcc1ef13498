/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.h: one token's products, straight from the rows of a tile: unpacking into tile order pays
 * only when several tokens share it. LANES rows at a time: a dot product takes 32 codes of one row,
 * and the sums of LANES rows are then added across, so that a sub-block's lie in one vector, a row
 * a lane. That is integer arithmetic, exact in any order; the float chain of a row runs in its
 * lane, so the bits are those of unpack and mul. (avx512/ has its own, four blocks at a time.)
 *
 * The includer brings, beside lanes.h and linear_unpack.h, types and functions of its own:
 *     codes             32 codes of one row: below 64, or of a format of offset TILE_SIGNED
 *     codes_load(p)     of 32 bytes; codes_or(a, b)
 *     codes_nibbles(p)  the low nibbles of 16 bytes, then their high ones
 *     codes_looked_up(p, value)          the same, each replaced by value[nibble]
 *     codes_int8(p)     of 32 int8, in the form of looked-up ones, as dot8_wide takes them
 *     codes_fifth_bits(p)                bit i of the four bytes at p to bit 4 of byte i
 *     codes_bits(v, from, to, mask)      each byte's bits from `from` on to `to` on, those of mask
 *     dots              sums of products of one row, not yet added up
 *     dot8(c, q, sub)   products of codes below 64 and int8; `sub`: the sums asked for later
 *     dot8_wide         the same for formats of offset TILE_SIGNED: less that, if the ISA's
 *                       act_pack leaves it out of `start`
 *     pair(a, b)        dots of two rows in one
 *     across16(p, s)    from the pairs of LANES rows to the sums of the two halves of 32 codes
 *     across32(p)       to those of all 32 */
#ifndef KERNELS_BODY_GEMV_H
#define KERNELS_BODY_GEMV_H

#include "kernels/body/linear_unpack.h"

/* ---- codes of one row: the format's, block by block ---- */

typedef codes codes_fn(const uint8_t *block);
INLINE codes codes_q4_0(const uint8_t *b) {
    return codes_nibbles(b + offsetof(struct q4_0_block, qs));
}
INLINE codes codes_q4_1(const uint8_t *b) {
    return codes_nibbles(b + offsetof(struct q4_1_block, qs));
}
INLINE codes codes_q5_0(const uint8_t *b) {
    return codes_or(codes_nibbles(b + offsetof(struct q5_0_block, qs)),
                    codes_fifth_bits(b + offsetof(struct q5_0_block, qh)));
}
INLINE codes codes_q5_1(const uint8_t *b) {
    return codes_or(codes_nibbles(b + offsetof(struct q5_1_block, qs)),
                    codes_fifth_bits(b + offsetof(struct q5_1_block, qh)));
}
INLINE codes codes_q8_0(const uint8_t *b) {
    return codes_int8((const int8_t *)b + offsetof(struct q8_0_block, qs));
}
INLINE codes codes_iq4_nl(const uint8_t *b) {
    return codes_looked_up(b + offsetof(struct iq4_nl_block, qs), iq4_nl_value);
}
INLINE codes codes_mxfp4(const uint8_t *b) {
    return codes_looked_up(b + offsetof(struct mxfp4_block, qs), mxfp4_value);
}

/* 32 codes of a block of 256, from 32 i on. */
typedef codes part_fn(const uint8_t *block, const int i);
INLINE codes part_iq4_xs(const uint8_t *b, const int i) {
    return codes_looked_up(b + offsetof(struct iq4_xs_block, qs) + 16 * i, iq4_nl_value);
}
INLINE codes part_q4_k(const uint8_t *b, const int i) {
    codes v = codes_load(b + offsetof(struct q4_k_block, qs) + i / 2 * 32);
    return codes_bits(v, i % 2 * 4, 0, 15);
}
INLINE codes part_q5_k(const uint8_t *b, const int i) {
    codes low = codes_load(b + offsetof(struct q5_k_block, qs) + i / 2 * 32);
    codes high = codes_load(b + offsetof(struct q5_k_block, qh));
    return codes_or(codes_bits(low, i % 2 * 4, 0, 15), codes_bits(high, i, 4, 16));
}
INLINE codes part_q6_k(const uint8_t *b, const int i) {
    codes low = codes_load(b + offsetof(struct q6_k_block, ql) + i / 4 * 64 + i % 2 * 32);
    codes high = codes_load(b + offsetof(struct q6_k_block, qh) + i / 4 * 32);
    return codes_or(codes_bits(low, i % 4 / 2 * 4, 0, 15), codes_bits(high, i % 4 * 2, 4, 48));
}
INLINE codes part_q2_k(const uint8_t *b, const int i) {
    codes v = codes_load(b + offsetof(struct q2_k_block, qs) + i / 4 * 32);
    return codes_bits(v, i % 4 * 2, 0, 3);
}
INLINE codes part_q3_k(const uint8_t *b, const int i) {
    codes low = codes_load(b + offsetof(struct q3_k_block, qs) + i / 4 * 32);
    codes high = codes_load(b + offsetof(struct q3_k_block, hmask));
    return codes_or(codes_bits(low, i % 4 * 2, 0, 3), codes_bits(high, i, 2, 4));
}

/* ---- the float chain ---- */

struct chain {
    alignas(32) float scale[16][TILE_ROWS], min[16][TILE_ROWS]; /* of LANES rows each */
};

INLINE lanes_f step(lanes_f acc, lanes_i sum, const struct tile_act *x, uint32_t s,
                    const float *scale, const float *min, const bool has_min) {
    lanes_f v = lanes_fma((lanes_f)(sum + x->start[s]), lanes_set1(x->d[s]),
                          lanes_set1(x->bias[s]));
    acc = lanes_fma(v, lanes_at(scale), acc);
    return has_min ? lanes_fma(lanes_set1(x->sum[s]), lanes_at(min), acc) : acc;
}

/* The same place in the next tile of rows. */
INLINE void fetch_ahead(const uint8_t *p, size_t stride) {
    __builtin_prefetch(p + TILE_ROWS * stride);
}

typedef dots dot_fn(codes c, codes q, const uint32_t sub);

INLINE void gemv_32(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                    bool first, float *y, const size_t bytes, const bool has_min,
                    block_unpack *const scales, codes_fn *const block_codes, dot_fn *const dot) {
    struct chain k;
    struct place to = {NULL, k.scale[0], k.min[0]};
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES, w += LANES * stride, y += LANES) {
        lanes_f acc = first ? lanes_set1(0) : lanes_at(y);
        for (uint32_t i = 0; i < blocks; i++) {
            const uint8_t *block = w + i * bytes;
            codes q = codes_load(x->q + 32 * i);
            dots p[LANES / 2];
            scales(block, stride, to);
            UNROLL for (int j = 0; j < LANES / 2; j++) {
                dots sum[2];
                UNROLL for (int n = 0; n < 2; n++) {
                    const uint8_t *b = block + (size_t)(2 * j + n) * stride;
                    fetch_ahead(b, stride);
                    sum[n] = dot(block_codes(b), q, 32);
                }
                p[j] = pair(sum[0], sum[1]);
            }
            acc = step(acc, across32(p), x, i, k.scale[0], k.min[0], has_min);
        }
        lanes_put(y, acc);
    }
}

INLINE void gemv_k(const uint8_t *w, size_t stride, uint32_t blocks, const struct tile_act *x,
                   bool first, float *y, const size_t bytes, const uint32_t sub, const bool has_min,
                   block_unpack *const scales, part_fn *const part, dot_fn *const dot) {
    struct chain k;
    struct place to = {NULL, k.scale[0], k.min[0]};
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES, w += LANES * stride, y += LANES) {
        lanes_f acc = first ? lanes_set1(0) : lanes_at(y);
        for (uint32_t b = 0; b < blocks; b++) {
            const uint8_t *block = w + b * bytes;
            uint32_t s = b * (256 / sub);
            scales(block, stride, to);
            UNROLL for (int i = 0; i < 8; i++) {
                codes q = codes_load(x->q + 256 * b + 32 * i);
                dots p[LANES / 2];
                lanes_i sums[2];
                UNROLL for (int j = 0; j < LANES / 2; j++) {
                    dots sum[2];
                    UNROLL for (int n = 0; n < 2; n++) {
                        const uint8_t *row = block + (size_t)(2 * j + n) * stride;
                        if (64 * (size_t)i < bytes) fetch_ahead(row + 64 * i, stride);
                        sum[n] = dot(part(row, i), q, sub);
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
        lanes_put(y, acc);
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
