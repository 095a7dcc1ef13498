/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.h: what body/gemv.h asks for in vectors of 128 bits: `codes` are two of them, and so are
 * `dots`, one for each half of 32 codes, or one for all (twice) where no more is asked for. Codes
 * of offset TILE_SIGNED are taken as the int8 values they stand for (act_pack_neon). */
#ifndef KERNELS_NEON_GEMV_H
#define KERNELS_NEON_GEMV_H

#include "kernels/neon/lanes.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef struct codes { bytes16 v[2]; } codes;
typedef struct dots { int32x4_t v[2]; } dots;

/* ---- sums across ---- */

INLINE dots pair(dots a, dots b) {
    return (dots){{vpaddq_s32(a.v[0], b.v[0]), vpaddq_s32(a.v[1], b.v[1])}};
}
INLINE void across16(const dots p[2], lanes_i s[2]) {
    UNROLL for (int i = 0; i < 2; i++) s[i] = (lanes_i)vpaddq_s32(p[0].v[i], p[1].v[i]);
}
INLINE lanes_i across32(const dots p[2]) {
    return (lanes_i)vpaddq_s32(p[0].v[0], p[1].v[0]);
}

/* ---- codes ---- */

INLINE bytes16 load16(const void *p) { return (bytes16)vld1q_u8(p); }
INLINE codes codes_load(const void *p) {
    return (codes){{load16(p), load16((const uint8_t *)p + 16)}};
}
INLINE codes codes_or(codes a, codes b) { return (codes){{a.v[0] | b.v[0], a.v[1] | b.v[1]}}; }
INLINE codes codes_nibbles(const uint8_t *p) {
    bytes16 v = load16(p);
    return (codes){{v & 15, v >> 4}};
}
INLINE codes codes_looked_up(const uint8_t *p, const uint8_t value[16]) {
    uint8x16_t table = (uint8x16_t)(load16(value) ^ 0x80);
    codes c = codes_nibbles(p);
    UNROLL for (int i = 0; i < 2; i++) c.v[i] = (bytes16)vqtbl1q_u8(table, (uint8x16_t)c.v[i]);
    return c;
}
INLINE codes codes_int8(const int8_t *p) { return codes_load(p); }
INLINE codes codes_fifth_bits(const uint8_t *p) {
    static const uint8_t byte[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                     2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
    uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint32_t word;
    memcpy(&word, p, sizeof word);
    uint8x16_t v = vreinterpretq_u8_u32(vdupq_n_u32(word));
    codes c;
    UNROLL for (int i = 0; i < 2; i++) c.v[i] =
        (bytes16)vtstq_u8(vqtbl1q_u8(v, vld1q_u8(byte + 16 * i)), bit) & 16;
    return c;
}
/* A mask that the shift has made already is none. */
INLINE codes codes_bits(codes c, const int from, const int to, const int mask) {
    const int left = from < to ? to - from : 0, right = from < to ? 0 : from - to;
    UNROLL for (int i = 0; i < 2; i++) {
        c.v[i] = c.v[i] << (uint8_t)left >> (uint8_t)right;
        if ((0xff << left & 0xff) >> right != mask) c.v[i] &= (uint8_t)mask;
    }
    return c;
}

/* ---- products ---- */

INLINE dots dot8(codes c, codes q, const uint32_t sub) {
    dots d;
    d.v[0] = vdotq_s32(vdupq_n_s32(0), (int8x16_t)c.v[0], (int8x16_t)q.v[0]);
    d.v[1] = vdotq_s32(sub == 16 ? vdupq_n_s32(0) : d.v[0], (int8x16_t)c.v[1], (int8x16_t)q.v[1]);
    if (sub == 32) d.v[0] = d.v[1];
    return d;
}
#define dot8_wide dot8

#endif
