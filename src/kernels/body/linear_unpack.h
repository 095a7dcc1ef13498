/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_unpack.h: blocks of LANES rows to codes, scales and mins of a tile, once for all vector
 * ISAs: the includer brings lanes.h of its own. The layouts are drawn in quant/<fmt>.h; a dword
 * here is four bytes of one row, so four codes. Scales and mins have the bits that quant/ gives. */
#ifndef KERNELS_BODY_LINEAR_UNPACK_H
#define KERNELS_BODY_LINEAR_UNPACK_H

#include "kernels/body/linear_tile.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/q3_k.h"
#include "quant/q4_1.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/q8_k.h"
#include "quant/tq1_0.h"
#include "quant/tq2_0.h"

/* Where a block goes: the first of its codes, scales and mins for the first of the rows. */
struct place {
    uint8_t *code;
    float *scale, *min;
};

INLINE void put_code(struct place to, int dword, lanes_u v) {
    *(lanes_u *)(to.code + dword * TILE_ROWS * 4) = v;
}
INLINE void put_scale(struct place to, int sub, lanes_f v) {
    *(lanes_f *)(to.scale + sub * TILE_ROWS) = v;
}
INLINE void put_min(struct place to, int sub, lanes_f v) {
    *(lanes_f *)(to.min + sub * TILE_ROWS) = v;
}
INLINE lanes_f to_float(lanes_u v) { return __builtin_convertvector((lanes_i)v, lanes_f); }
/* Byte b of each lane, signed. */
INLINE lanes_f signed_byte(lanes_u v, int b) {
    return __builtin_convertvector((lanes_i)(v << (24 - 8 * b)) >> 24, lanes_f);
}

/* Bit `from` of each byte to bit `to`, the other bits 0. */
INLINE lanes_u move_bit(lanes_u v, int from, int to) {
    return (from < to ? v << (to - from) : v >> (from - to)) & 0x01010101u << to;
}
INLINE lanes_u low_nibbles(lanes_u v) { return v & 0x0f0f0f0f; }
INLINE lanes_u high_nibbles(lanes_u v) { return v >> 4 & 0x0f0f0f0f; }

typedef void block_unpack(const uint8_t *p, size_t stride, struct place to);

INLINE void tile_blocks(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile,
                        block_unpack *unpack, uint32_t bytes, uint32_t block, uint32_t sub) {
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES)
        for (uint32_t b = 0; b < blocks; b++)
            unpack(w + r * stride + b * bytes, stride,
                   (struct place){tile->code[b * block / 4][r], &tile->scale[b * (block / sub)][r],
                                  &tile->min[b * (block / sub)][r]});
}

/* ---- blocks of 32: 4-bit codes, the low nibbles first ---- */
INLINE void half_scale(const uint8_t *p, size_t stride, struct place to) {
    put_scale(to, 0, lanes_half_at(p, stride));
}
/* An offset is a negative min. */
INLINE void half_scale_offset(const uint8_t *p, size_t stride, struct place to) {
    lanes_u head[4];
    lanes_load(p, stride, head);
    put_scale(to, 0, lanes_half(head[0] & 0xffff));
    put_min(to, 0, -lanes_half(head[0] >> 16));
}

INLINE void block_q4_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    half_scale(p, stride, to);
    lanes_load(p + offsetof(struct q4_0_block, qs), stride, v);
    for (int j = 0; j < 4; j++) {
        put_code(to, j, low_nibbles(v[j]));
        put_code(to, j + 4, high_nibbles(v[j]));
    }
}

INLINE void block_q4_1(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    half_scale_offset(p, stride, to);
    lanes_load(p + offsetof(struct q4_1_block, qs), stride, v);
    for (int j = 0; j < 4; j++) {
        put_code(to, j, low_nibbles(v[j]));
        put_code(to, j + 4, high_nibbles(v[j]));
    }
}

INLINE void lookup_nibbles(lanes_u v, const uint8_t table[16], struct place to, int dword) {
    put_code(to, dword, lanes_lookup(low_nibbles(v), table));
    put_code(to, dword + 4, lanes_lookup(high_nibbles(v), table));
}

INLINE void block_iq4_nl(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    half_scale(p, stride, to);
    lanes_load(p + offsetof(struct iq4_nl_block, qs), stride, v);
    for (int j = 0; j < 4; j++) lookup_nibbles(v[j], iq4_nl_value, to, j);
}

INLINE void scales_mxfp4(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    lanes_load(p, stride, v);
    lanes_u e = v[0] & 0xff, small = (lanes_u)(e < 2);
    put_scale(to, 0, (lanes_f)((small & 0x00200000u << (e & 1)) | (~small & (e - 1) << 23)));
}
INLINE void block_mxfp4(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    scales_mxfp4(p, stride, to);
    lanes_load(p + offsetof(struct mxfp4_block, qs), stride, v);
    for (int j = 0; j < 4; j++) lookup_nibbles(v[j], mxfp4_value, to, j);
}

/* ---- blocks of 32: 5-bit codes ---- */
INLINE void q5_codes(const uint8_t *qs, size_t stride, lanes_u qh, struct place to) {
    lanes_u v[4];
    lanes_load(qs, stride, v);
    for (int j = 0; j < 4; j++) {
        put_code(to, j, low_nibbles(v[j]) | lanes_spread(qh, 4 * j, 4));
        put_code(to, j + 4, high_nibbles(v[j]) | lanes_spread(qh, 16 + 4 * j, 4));
    }
}

INLINE void block_q5_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u head[4];
    lanes_load(p, stride, head);
    put_scale(to, 0, lanes_half(head[0] & 0xffff));
    q5_codes(p + offsetof(struct q5_0_block, qs), stride, head[0] >> 16 | head[1] << 16, to);
}

INLINE void block_q5_1(const uint8_t *p, size_t stride, struct place to) {
    lanes_u head[4];
    lanes_load(p, stride, head);
    put_scale(to, 0, lanes_half(head[0] & 0xffff));
    put_min(to, 0, -lanes_half(head[0] >> 16));
    q5_codes(p + offsetof(struct q5_1_block, qs), stride, head[1], to);
}

/* ---- Q8_0 ---- */
INLINE void block_q8_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    half_scale(p, stride, to);
    for (int i = 0; i < 2; i++) {
        lanes_load(p + offsetof(struct q8_0_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) put_code(to, 4 * i + j, v[j] ^ 0x80808080);
    }
}

/* ---- 2-bit codes: Q2_K, TQ2_0, and the low bits of Q3_K ---- */
INLINE void scales_q2_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u a[4], v[4];
    lanes_load(p + offsetof(struct q2_k_block, dmin) - 14, stride, v); /* ends with d, dmin */
    lanes_f d = lanes_half(v[3] & 0xffff), dmin = lanes_half(v[3] >> 16);
    lanes_load(p, stride, a);
    for (int s = 0; s < 16; s++) {
        lanes_u both = a[s / 4] >> 8 * (s % 4);
        put_scale(to, s, d * to_float(both & 15));
        put_min(to, s, dmin * to_float(both >> 4 & 15));
    }
}
INLINE void block_q2_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    scales_q2_k(p, stride, to);
    for (int i = 0; i < 4; i++) { /* 16 bytes of qs: half of a group of 32, in half i / 2 */
        lanes_load(p + offsetof(struct q2_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++)
            for (int g = 0; g < 4; g++)
                put_code(to, i / 2 * 32 + g * 8 + i % 2 * 4 + j, v[j] >> 2 * g & 0x03030303);
    }
}

INLINE void block_tq2_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_f d = lanes_half_at(p + offsetof(struct tq2_0_block, d), stride);
    for (int s = 0; s < 8; s++) put_scale(to, s, d);
    for (int i = 0; i < 4; i++) {
        lanes_u v[4];
        lanes_load(p + offsetof(struct tq2_0_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++)
            for (int g = 0; g < 4; g++)
                put_code(to, i / 2 * 32 + g * 8 + i % 2 * 4 + j, v[j] >> 2 * g & 0x03030303);
    }
}

INLINE void scales_q3_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4], sc[3];
    lanes_load(p + offsetof(struct q3_k_block, d) - 14, stride, v); /* 2 bytes, scales, d */
    for (int i = 0; i < 3; i++) sc[i] = v[i] >> 16 | v[i + 1] << 16;
    lanes_f d = lanes_half(v[3] >> 16);
    for (int s = 0; s < 16; s++) {
        lanes_u low = sc[s / 4 % 2] >> (8 * (s % 4) + s / 8 * 4) & 15;
        lanes_u top = sc[2] >> (8 * (s % 4) + s / 4 * 2) & 3;
        put_scale(to, s, d * to_float((low | top << 4) - 32));
    }
}
INLINE void block_q3_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4], high[2][4];
    scales_q3_k(p, stride, to);
    lanes_load(p, stride, high[0]);
    lanes_load(p + 16, stride, high[1]);
    for (int i = 0; i < 4; i++) {
        lanes_load(p + offsetof(struct q3_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++)
            for (int g = 0; g < 4; g++)
                put_code(to, i / 2 * 32 + g * 8 + i % 2 * 4 + j,
                         (v[j] >> 2 * g & 0x03030303) | move_bit(high[i % 2][j], i / 2 * 4 + g, 2));
    }
}

/* ---- Q4_K ---- */
INLINE void scales_q4_k(const uint8_t *p, size_t stride, struct place to) { /* and Q5_K */
    lanes_u head[4];
    lanes_load(p, stride, head);
    lanes_f d = lanes_half(head[0] & 0xffff), dmin = lanes_half(head[0] >> 16);
    for (int s = 0; s < 4; s++) {
        lanes_u a = head[1] >> 8 * s, b = head[2] >> 8 * s, c = head[3] >> 8 * s;
        put_scale(to, s, d * to_float(a & 63));
        put_min(to, s, dmin * to_float(b & 63));
        put_scale(to, s + 4, d * to_float((c & 15) | (a >> 2 & 0x30)));
        put_min(to, s + 4, dmin * to_float((c >> 4 & 15) | (b >> 2 & 0x30)));
    }
}

INLINE void block_q4_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    scales_q4_k(p, stride, to);
    for (int i = 0; i < 8; i++) { /* 16 bytes of qs, half of a group */
        lanes_load(p + offsetof(struct q4_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) {
            int dword = i / 2 * 16 + i % 2 * 4 + j;
            put_code(to, dword, low_nibbles(v[j]));
            put_code(to, dword + 8, high_nibbles(v[j]));
        }
    }
}

/* ---- Q5_K ---- */
INLINE void block_q5_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4], high[2][4];
    scales_q4_k(p, stride, to);
    lanes_load(p + offsetof(struct q5_k_block, qh), stride, high[0]);
    lanes_load(p + offsetof(struct q5_k_block, qh) + 16, stride, high[1]);
    for (int i = 0; i < 8; i++) { /* 16 bytes of qs: half of group i / 2 */
        lanes_load(p + offsetof(struct q5_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) {
            int dword = i / 2 * 16 + i % 2 * 4 + j, bit = i / 2 * 2;
            put_code(to, dword, low_nibbles(v[j]) | move_bit(high[i % 2][j], bit, 4));
            put_code(to, dword + 8, high_nibbles(v[j]) | move_bit(high[i % 2][j], bit + 1, 4));
        }
    }
}

/* ---- IQ4_XS ---- */
INLINE void scales_iq4_xs(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    lanes_load(p, stride, v);
    lanes_f d = lanes_half(v[0] & 0xffff);
    for (int s = 0; s < 8; s++) {
        lanes_u scale = (v[1] >> 4 * s & 15) | (v[0] >> (16 + 2 * s) & 3) << 4;
        put_scale(to, s, d * to_float(scale - 32));
    }
}
INLINE void block_iq4_xs(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    scales_iq4_xs(p, stride, to);
    for (int s = 0; s < 8; s++) {
        lanes_load(p + offsetof(struct iq4_xs_block, qs) + 16 * s, stride, v);
        for (int j = 0; j < 4; j++) lookup_nibbles(v[j], iq4_nl_value, to, 8 * s + j);
    }
}

/* ---- Q6_K ---- */
INLINE void scales_q6_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u a[4];
    lanes_f d = lanes_half_at(p + offsetof(struct q6_k_block, d), stride);
    lanes_load(p + offsetof(struct q6_k_block, scales), stride, a);
    for (int s = 0; s < 16; s++) put_scale(to, s, d * signed_byte(a[s / 4], s % 4));
}
INLINE void block_q6_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u a[4], b[4], h[4];
    scales_q6_k(p, stride, to);
    for (int i = 0; i < 4; i++) { /* 16 bytes of qh: half of a group of 32, in half i / 2 */
        const uint8_t *ql = p + i / 2 * 64 + i % 2 * 16;
        lanes_load(ql, stride, a);
        lanes_load(ql + 32, stride, b);
        lanes_load(p + offsetof(struct q6_k_block, qh) + 16 * i, stride, h);
        for (int j = 0; j < 4; j++) {
            int dword = i / 2 * 32 + i % 2 * 4 + j;
            put_code(to, dword, low_nibbles(a[j]) | (h[j] << 4 & 0x30303030));
            put_code(to, dword + 8, low_nibbles(b[j]) | (h[j] << 2 & 0x30303030));
            put_code(to, dword + 16, high_nibbles(a[j]) | (h[j] & 0x30303030));
            put_code(to, dword + 24, high_nibbles(b[j]) | (h[j] >> 2 & 0x30303030));
        }
    }
}

/* ---- Q8_K ---- */
INLINE void block_q8_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    lanes_load(p, stride, v);
    for (int s = 0; s < 8; s++) put_scale(to, s, (lanes_f)v[0]);
    for (int i = 0; i < 16; i++) {
        lanes_load(p + offsetof(struct q8_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) put_code(to, 4 * i + j, v[j] ^ 0x80808080);
    }
}

/* ---- NVFP4 ---- */
INLINE void block_nvfp4(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    lanes_load(p, stride, v);
    for (int s = 0; s < 4; s++) { /* nvfp4_scale() */
        lanes_u d = v[0] >> 8 * s & 0xff, e = d >> 3 & 15, m = d & 7;
        lanes_u small = (lanes_u)(to_float(m) * 0x1p-10f), normal = (e + 119) << 23 | m << 20;
        lanes_u is_small = (lanes_u)(e == 0), is_number = (lanes_u)(d != 0x7f);
        put_scale(to, s, (lanes_f)(((is_small & small) | (~is_small & normal)) & is_number));
    }
    for (int i = 0; i < 2; i++) { /* 16 bytes: two sub-blocks */
        lanes_load(p + offsetof(struct nvfp4_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) {
            int dword = (2 * i + j / 2) * 4 + j % 2;
            put_code(to, dword, lanes_lookup(low_nibbles(v[j]), mxfp4_value));
            put_code(to, dword + 2, lanes_lookup(high_nibbles(v[j]), mxfp4_value));
        }
    }
}

/* ---- TQ1_0: four bytes' digits in base 3, each multiplication pushing the next one above 8 bits,
 * so bytes take turns in halves of 16 ---- */
INLINE void put_digits(struct place to, int dword, int step, int digits, lanes_u bytes) {
    lanes_u even = bytes & 0x00ff00ff, odd = bytes >> 8 & 0x00ff00ff;
    for (int n = 0; n < digits; n++) {
        even += even << 1;
        odd += odd << 1;
        put_code(to, dword + n * step, (even >> 8 & 0x00030003) | (odd & 0x03000300));
        even &= 0x00ff00ff;
        odd &= 0x00ff00ff;
    }
}

INLINE void block_tq1_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    for (int i = 0; i < 3; i++) {
        lanes_load(p + 16 * i, stride, v);
        for (int j = 0; j < 4; j++)
            if (i < 2)
                put_digits(to, 4 * i + j, 8, 5, v[j]);
            else
                put_digits(to, 40 + j, 4, 5, v[j]);
    }
    lanes_load(p + sizeof(struct tq1_0_block) - 16, stride, v); /* qh, d are its last 6 bytes */
    put_digits(to, 60, 1, 4, v[2] >> 16 | v[3] << 16);
    lanes_f d = lanes_half(v[3] >> 16);
    for (int s = 0; s < 8; s++) put_scale(to, s, d);
}

#include "kernels/body/linear_unpack_grid.h"

/* ---- the table ---- */
#define TILE(fmt, FMT)                                                                             \
    static void tile_##fmt(const uint8_t *w, size_t stride, uint32_t blocks,                       \
                           struct linear_tile *tile) {                                             \
        tile_blocks(w, stride, blocks, tile, block_##fmt, sizeof(struct fmt##_block), FMT##_BLOCK, \
                    FMT##_SUB);                                                                    \
    }
TILE(q4_0, Q4_0)
TILE(q4_1, Q4_1)
TILE(q5_0, Q5_0)
TILE(q5_1, Q5_1)
TILE(q8_0, Q8_0)
TILE(q2_k, Q2_K)
TILE(q3_k, Q3_K)
TILE(q4_k, Q4_K)
TILE(q5_k, Q5_K)
TILE(q6_k, Q6_K)
TILE(q8_k, Q8_K)
TILE(iq1_s, IQ1_S)
TILE(iq1_m, IQ1_M)
TILE(iq2_xxs, IQ2_XXS)
TILE(iq2_xs, IQ2_XS)
TILE(iq2_s, IQ2_S)
TILE(iq3_xxs, IQ3_XXS)
TILE(iq3_s, IQ3_S)
TILE(iq4_nl, IQ4_NL)
TILE(iq4_xs, IQ4_XS)
TILE(tq1_0, TQ1_0)
TILE(tq2_0, TQ2_0)
TILE(mxfp4, MXFP4)
TILE(nvfp4, NVFP4)
#undef TILE

#define TILE_UNPACK                                                                               \
    {                                                                                             \
        [QUANT_q4_0] = tile_q4_0, [QUANT_q4_1] = tile_q4_1, [QUANT_q5_0] = tile_q5_0,             \
        [QUANT_q5_1] = tile_q5_1, [QUANT_q8_0] = tile_q8_0, [QUANT_q2_k] = tile_q2_k,             \
        [QUANT_q3_k] = tile_q3_k, [QUANT_q4_k] = tile_q4_k, [QUANT_q5_k] = tile_q5_k,             \
        [QUANT_q6_k] = tile_q6_k, [QUANT_q8_k] = tile_q8_k, [QUANT_iq1_s] = tile_iq1_s,           \
        [QUANT_iq1_m] = tile_iq1_m, [QUANT_iq2_xxs] = tile_iq2_xxs, [QUANT_iq2_xs] = tile_iq2_xs, \
        [QUANT_iq2_s] = tile_iq2_s, [QUANT_iq3_xxs] = tile_iq3_xxs, [QUANT_iq3_s] = tile_iq3_s,   \
        [QUANT_iq4_nl] = tile_iq4_nl, [QUANT_iq4_xs] = tile_iq4_xs, [QUANT_tq1_0] = tile_tq1_0,   \
        [QUANT_tq2_0] = tile_tq2_0, [QUANT_mxfp4] = tile_mxfp4, [QUANT_nvfp4] = tile_nvfp4        \
    }

#endif
