/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_unpack_grid.h: the formats whose codes are rows of a table: IQ1, IQ2, IQ3. As
 * linear_unpack.h, which includes it; a lane looks its row's dwords of four codes up. */
#ifndef KERNELS_BODY_LINEAR_UNPACK_GRID_H
#define KERNELS_BODY_LINEAR_UNPACK_GRID_H

#include "quant/iq1_m.h"
#include "quant/iq1_s.h"
#include "quant/iq2_s.h"
#include "quant/iq2_xs.h"
#include "quant/iq2_xxs.h"
#include "quant/iq3_s.h"
#include "quant/iq3_xxs.h"

INLINE lanes_u byte_of(lanes_u v, int b) { return v >> 8 * b & 0xff; }
INLINE lanes_u half_of(lanes_u v, int h) { return v >> 16 * h & 0xffff; }

/* grid_signs7() of each lane. */
INLINE lanes_u signs7(lanes_u bits) {
    bits &= 127;
    lanes_u parity = bits ^ bits >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return bits | (parity & 1) << 7;
}

/* Functions of their own: written out at each of their places they are most of the compiler's time,
 * and the table lookups are what takes the processor's. */
#define APART static __attribute__((noinline)) void

/* Four magnitudes, none of them 0, negative where bit b of `signs` is set, + 128. No sum of bytes
 * carries: ~m + 1 = 256 - m for m > 0. */
INLINE lanes_u signed_codes(lanes_u magnitude, lanes_u signs) {
    lanes_u one = lanes_spread(signs, 0, 0);
    lanes_u ones = (one << 8) - one; /* 0xff in each byte with a 1 */
    return ((magnitude ^ ones) + one) ^ 0x80808080;
}

/* Row `row` of a table of 4 bytes a row, with the low 4 bits of `signs`. */
APART put_signed4(struct place to, int dword, const uint8_t (*grid)[4], lanes_u row,
                  lanes_u signs) {
    put_code(to, dword, signed_codes(lanes_gather(grid[0], row), signs));
}

/* Row `row` of a table of 8 bytes a row, with the low 8 bits of `signs`. */
APART put_signed8(struct place to, int dword, const uint8_t (*grid)[8], lanes_u row,
                  lanes_u signs) {
    put_code(to, dword, signed_codes(lanes_gather(grid[0], row * 2), signs));
    put_code(to, dword + 1, signed_codes(lanes_gather(grid[0], row * 2 + 1), signs >> 4));
}

INLINE void load_blocks(const uint8_t *p, size_t stride, int loads, lanes_u v[][4]) {
    for (int i = 0; i < loads; i++) lanes_load(p + 16 * i, stride, v[i]);
}

/* ---- IQ2 ---- */
INLINE lanes_f scale_iq2(lanes_f d, lanes_u scale) { return d * (0.5f + to_float(scale)) * 0.25f; }

INLINE void block_iq2_xxs(const uint8_t *p, size_t stride, struct place to) {
    lanes_f d = lanes_half_at(p, stride);
    for (int i = 0; i < 4; i++) { /* two sub-blocks of 8 bytes */
        lanes_u v[4];
        lanes_load(p + offsetof(struct iq2_xxs_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 2; j++) {
            int s = 2 * i + j;
            lanes_u rows = v[2 * j], word = v[2 * j + 1];
            for (int k = 0; k < 4; k++)
                put_signed8(to, 8 * s + 2 * k, iq2_xxs_grid, byte_of(rows, k),
                            signs7(word >> 7 * k));
            put_scale(to, s, scale_iq2(d, word >> 28));
        }
    }
}

INLINE void block_iq2_xs(const uint8_t *p, size_t stride, struct place to) {
    lanes_u sc[4];
    lanes_f d = lanes_half_at(p, stride);
    lanes_load(p + offsetof(struct iq2_xs_block, scales) - 8, stride, sc);
    for (int s = 0; s < 16; s++) put_scale(to, s, scale_iq2(d, sc[2 + s / 8] >> s % 8 * 4 & 15));
    for (int i = 0; i < 4; i++) {
        lanes_u v[4];
        lanes_load(p + offsetof(struct iq2_xs_block, qs) + 16 * i, stride, v);
        for (int l = 0; l < 8; l++) {
            lanes_u q = half_of(v[l / 2], l % 2);
            put_signed8(to, 16 * i + 2 * l, iq2_xs_grid, q & 511, signs7(q >> 9));
        }
    }
}

INLINE void block_iq2_s(const uint8_t *p, size_t stride, struct place to) {
    lanes_u qs[2][4], signs[2][4], rest[4]; /* rest: qh, scales */
    lanes_f d = lanes_half_at(p, stride);
    load_blocks(p + offsetof(struct iq2_s_block, qs), stride, 2, qs);
    load_blocks(p + offsetof(struct iq2_s_block, signs), stride, 2, signs);
    lanes_load(p + offsetof(struct iq2_s_block, qh), stride, rest);
    for (int s = 0; s < 16; s++) put_scale(to, s, scale_iq2(d, rest[2 + s / 8] >> s % 8 * 4 & 15));
    for (int l = 0; l < 32; l++) {
        lanes_u low = byte_of(qs[l / 16][l / 4 % 4], l % 4), high = rest[l / 16] >> l % 16 * 2 & 3;
        put_signed8(to, 2 * l, iq2_s_grid, low | high << 8, signs[l / 16][l / 4 % 4] >> l % 4 * 8);
    }
}

/* ---- IQ3: four codes a row ---- */
INLINE void block_iq3_xxs(const uint8_t *p, size_t stride, struct place to) {
    lanes_u word[2][4];
    lanes_f d = lanes_half_at(p, stride);
    load_blocks(p + offsetof(struct iq3_xxs_block, words), stride, 2, word);
    for (int i = 0; i < 4; i++) { /* the rows of two sub-blocks */
        lanes_u v[4];
        lanes_load(p + offsetof(struct iq3_xxs_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 2; j++) {
            int s = 2 * i + j;
            lanes_u w = word[s / 4][s % 4];
            for (int k = 0; k < 8; k++) {
                lanes_u row = byte_of(v[2 * j + k / 4], k % 4);
                put_signed4(to, 8 * s + k, iq3_xxs_grid, row, signs7(w >> k / 2 * 7) >> k % 2 * 4);
            }
            put_scale(to, s, d * (0.5f + to_float(w >> 28)) * 0.5f);
        }
    }
}

INLINE void block_iq3_s(const uint8_t *p, size_t stride, struct place to) {
    lanes_u high[4], signs[2][4], sc[4];
    lanes_f d = lanes_half_at(p, stride);
    lanes_load(p + offsetof(struct iq3_s_block, qh), stride, high);
    load_blocks(p + offsetof(struct iq3_s_block, signs), stride, 2, signs);
    lanes_load(p + offsetof(struct iq3_s_block, scales) - 12, stride, sc);
    for (int i = 0; i < 4; i++) {
        lanes_u v[4];
        lanes_load(p + offsetof(struct iq3_s_block, qs) + 16 * i, stride, v);
        for (int j = 0; j < 2; j++) {
            int s = 2 * i + j;
            for (int k = 0; k < 8; k++) {
                lanes_u row =
                    byte_of(v[2 * j + k / 4], k % 4) | (high[s / 4] >> (s % 4 * 8 + k) & 1) << 8;
                put_signed4(to, 8 * s + k, iq3_s_grid, row, signs[s / 4][s % 4] >> 4 * k);
            }
            put_scale(to, s, d * to_float(1 + 2 * (sc[3] >> 4 * s & 15)));
        }
    }
}

/* ---- IQ1: rows of 8 (value + 128) shifted by one, down where `down` is 1 ---- */
APART put_shifted8(struct place to, int dword, lanes_u row, lanes_u down) {
    lanes_u shift = (0x01010101 ^ -down) + down;
    put_code(to, dword, lanes_gather(iq1_s_grid[0], row * 2) + shift);
    put_code(to, dword + 1, lanes_gather(iq1_s_grid[0], row * 2 + 1) + shift);
}

INLINE lanes_f scale_iq1(lanes_f d, lanes_u scale) { return d * to_float(2 * scale + 1) * 0.125f; }

INLINE void block_iq1_s(const uint8_t *p, size_t stride, struct place to) {
    lanes_u qs[2][4], qh[4];
    lanes_f d = lanes_half_at(p, stride);
    load_blocks(p + offsetof(struct iq1_s_block, qs), stride, 2, qs);
    lanes_load(p + offsetof(struct iq1_s_block, qh), stride, qh);
    for (int s = 0; s < 8; s++) {
        lanes_u high = half_of(qh[s / 2], s % 2);
        for (int k = 0; k < 4; k++)
            put_shifted8(to, 8 * s + 2 * k, byte_of(qs[s / 4][s % 4], k) | (high >> 3 * k & 7) << 8,
                         high >> 15);
        put_scale(to, s, scale_iq1(d, high >> 12 & 7));
    }
}

INLINE void block_iq1_m(const uint8_t *p, size_t stride, struct place to) {
    lanes_u qs[2][4], qh[4], v[4], sc[4];
    load_blocks(p, stride, 2, qs);
    lanes_load(p + offsetof(struct iq1_m_block, qh), stride, qh);
    lanes_load(p + offsetof(struct iq1_m_block, scales) - 8, stride, v);
    for (int j = 0; j < 4; j++) sc[j] = half_of(v[2 + j / 2], j % 2);
    lanes_f d = lanes_half(sc[0] >> 12 | sc[1] >> 12 << 4 | sc[2] >> 12 << 8 | sc[3] >> 12 << 12);
    for (int s = 0; s < 16; s++) put_scale(to, s, scale_iq1(d, sc[s / 4] >> s % 4 * 3 & 7));
    for (int l = 0; l < 32; l++) {
        lanes_u high = qh[l / 8] >> l % 8 * 4 & 15;
        put_shifted8(to, 2 * l, byte_of(qs[l / 16][l / 4 % 4], l % 4) | (high & 7) << 8, high >> 3);
    }
}

#endif
