/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_unpack.h: blocks of LANES rows to codes, scales and mins of a tile, once for all vector
 * ISAs: the includer brings lanes.h of its own. The layouts are drawn in quant/<fmt>.h; a dword here
 * is four bytes of one row, so four codes. Scales and mins have the bits that quant/ gives. */
#ifndef KERNELS_BODY_LINEAR_UNPACK_H
#define KERNELS_BODY_LINEAR_UNPACK_H

#include "kernels/body/linear_tile.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

/* Where a block goes: the first of its codes, scales and mins for the first of the rows. */
struct place { uint8_t *code; float *scale, *min; };

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

typedef void block_unpack(const uint8_t *p, size_t stride, struct place to);

INLINE void tile_blocks(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile,
                        block_unpack *unpack, uint32_t bytes, uint32_t block, uint32_t sub) {
    for (uint32_t r = 0; r < TILE_ROWS; r += LANES)
        for (uint32_t b = 0; b < blocks; b++)
            unpack(w + r * stride + b * bytes, stride,
                   (struct place){tile->code[b * block / 4][r], &tile->scale[b * (block / sub)][r],
                                  &tile->min[b * (block / sub)][r]});
}

/* ---- Q4_K ---- */
INLINE void q4_k_scales(const lanes_u head[4], struct place to) {
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
    lanes_load(p, stride, v);
    q4_k_scales(v, to);
    for (int i = 0; i < 8; i++) { /* 16 bytes of qs, half of a group */
        lanes_load(p + offsetof(struct q4_k_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) {
            int dword = i / 2 * 16 + i % 2 * 4 + j;
            put_code(to, dword, v[j] & 0x0f0f0f0f);
            put_code(to, dword + 8, v[j] >> 4 & 0x0f0f0f0f);
        }
    }
}
static void tile_q4_k(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile) {
    tile_blocks(w, stride, blocks, tile, block_q4_k, sizeof(struct q4_k_block), Q4_K_BLOCK, Q4_K_SUB);
}

/* ---- Q5_0 ---- */
INLINE void block_q5_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u head[4], v[4];
    lanes_load(p, stride, head);
    put_scale(to, 0, lanes_half(head[0] & 0xffff));
    lanes_u qh = head[0] >> 16 | head[1] << 16;
    lanes_load(p + offsetof(struct q5_0_block, qs), stride, v);
    for (int j = 0; j < 4; j++) {
        put_code(to, j, (v[j] & 0x0f0f0f0f) | lanes_spread(qh, 4 * j, 4));
        put_code(to, j + 4, (v[j] >> 4 & 0x0f0f0f0f) | lanes_spread(qh, 16 + 4 * j, 4));
    }
}
static void tile_q5_0(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile) {
    tile_blocks(w, stride, blocks, tile, block_q5_0, sizeof(struct q5_0_block), Q5_0_BLOCK, Q5_0_SUB);
}

/* ---- Q6_K ---- */
INLINE void block_q6_k(const uint8_t *p, size_t stride, struct place to) {
    lanes_u a[4], b[4], h[4];
    lanes_f d = lanes_half_at(p + offsetof(struct q6_k_block, d), stride);
    lanes_load(p + offsetof(struct q6_k_block, scales), stride, a);
    for (int s = 0; s < 16; s++) put_scale(to, s, d * signed_byte(a[s / 4], s % 4));
    for (int i = 0; i < 4; i++) { /* 16 bytes of qh: half of a group of 32, in half i / 2 */
        const uint8_t *ql = p + i / 2 * 64 + i % 2 * 16;
        lanes_load(ql, stride, a);
        lanes_load(ql + 32, stride, b);
        lanes_load(p + offsetof(struct q6_k_block, qh) + 16 * i, stride, h);
        for (int j = 0; j < 4; j++) {
            int dword = i / 2 * 32 + i % 2 * 4 + j;
            put_code(to, dword, (a[j] & 0x0f0f0f0f) | (h[j] << 4 & 0x30303030));
            put_code(to, dword + 8, (b[j] & 0x0f0f0f0f) | (h[j] << 2 & 0x30303030));
            put_code(to, dword + 16, (a[j] >> 4 & 0x0f0f0f0f) | (h[j] & 0x30303030));
            put_code(to, dword + 24, (b[j] >> 4 & 0x0f0f0f0f) | (h[j] >> 2 & 0x30303030));
        }
    }
}
static void tile_q6_k(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile) {
    tile_blocks(w, stride, blocks, tile, block_q6_k, sizeof(struct q6_k_block), Q6_K_BLOCK, Q6_K_SUB);
}

/* ---- Q8_0 ---- */
INLINE void block_q8_0(const uint8_t *p, size_t stride, struct place to) {
    lanes_u v[4];
    put_scale(to, 0, lanes_half_at(p, stride));
    for (int i = 0; i < 2; i++) {
        lanes_load(p + offsetof(struct q8_0_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 4; j++) put_code(to, 4 * i + j, v[j] ^ 0x80808080);
    }
}
static void tile_q8_0(const uint8_t *w, size_t stride, uint32_t blocks, struct linear_tile *tile) {
    tile_blocks(w, stride, blocks, tile, block_q8_0, sizeof(struct q8_0_block), Q8_0_BLOCK, Q8_0_SUB);
}

#define TILE_UNPACK                                                                     \
    {[QUANT_q4_k] = tile_q4_k, [QUANT_q5_0] = tile_q5_0, [QUANT_q6_k] = tile_q6_k,      \
     [QUANT_q8_0] = tile_q8_0}

#endif
