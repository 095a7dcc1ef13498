/* SPDX-License-Identifier: Apache-2.0
 *
 * tiles.h: the tile registers: their shapes, and 2 x 2 tiles of sums. Registers 0 to 3 are sums, 4
 * and 5 weights of two groups of rows, 6 and 7 inputs of two groups of tokens; compilers want these
 * numbers as digits. */
#ifndef KERNELS_AMX_TILES_H
#define KERNELS_AMX_TILES_H

#include "kernels/amx/floats.h"

struct shape {
    uint32_t rows, tokens; /* of up to two groups each */
};

INLINE uint8_t first_of(uint32_t n) { return (uint8_t)(n < GROUP ? n : GROUP); }
INLINE uint8_t second_of(uint32_t n) { return (uint8_t)(n > GROUP ? n - GROUP : 1); }

INLINE void configure(struct shape *now, struct shape s) {
    if (now->rows == s.rows && now->tokens == s.tokens) return;
    *now = s;
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } c = {.palette = 1};
    const uint8_t rows[2] = {first_of(s.rows), second_of(s.rows)};
    const uint8_t second = s.tokens > GROUP ? second_of(s.tokens) : first_of(s.tokens);
    const uint8_t tokens[2] = {first_of(s.tokens), second};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            c.rows[2 * i + j] = rows[i];
            c.bytes[2 * i + j] = (uint16_t)(4 * tokens[j]);
        }
        c.rows[4 + i] = rows[i];
        c.bytes[4 + i] = 2 * BLOCK;
        c.rows[6 + i] = BLOCK / 2;
        c.bytes[6 + i] = (uint16_t)(4 * tokens[i]);
    }
    __asm__ volatile("" : : "r"(&c) : "memory"); /* gcc 12 thinks that 8 bytes of it are read */
    _tile_loadconfig(&c);
}

/* Where tiles of two groups lie: the second is `group` bytes after the first, the next block of
 * columns `block` bytes; rows of a tile of weights are `stride` bytes apart. */
struct weights {
    const char *at;
    size_t group, block, stride;
};
struct inputs {
    const char *at, *second;
    size_t tile, second_tile; /* bytes */
};

/* Continues (or begins) up to 2 x 2 tiles of sums over `blocks` blocks of columns, with constant
 * pieces, rows and tokens (in groups). */
INLINE void multiply(struct weights w, struct inputs x, uint32_t blocks, bool first, float *sum,
                     const int pieces, const int rows, const int tokens) {
    enum { ROW_SUMS = GROUP * GROUP, TOKEN_SUMS = ROWS * GROUP };
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, sum, 64);
        if (tokens == 2) _tile_loadd(1, sum + TOKEN_SUMS, 64);
        if (rows == 2) _tile_loadd(2, sum + ROW_SUMS, 64);
        if (rows == 2 && tokens == 2) _tile_loadd(3, sum + TOKEN_SUMS + ROW_SUMS, 64);
    }
    for (uint32_t b = 0; b < blocks; b++) {
        _tile_loadd(4, w.at, w.stride);
        if (rows == 2) _tile_loadd(5, w.at + w.group, w.stride);
        UNROLL for (int piece = PIECES; piece-- > 0;) { /* the small one first */
            _tile_loadd(6, x.at + (size_t)piece * x.tile, x.tile / 16);
            _tile_dpbf16ps(0, 4, 6);
            if (rows == 2) _tile_dpbf16ps(2, 5, 6);
            if (tokens == 1) continue;
            _tile_loadd(7, x.second + (size_t)piece * x.second_tile, x.second_tile / 16);
            _tile_dpbf16ps(1, 4, 7);
            if (rows == 2) _tile_dpbf16ps(3, 5, 7);
        }
        if (pieces == 2) { /* times the first pieces of x, which are still there */
            _tile_loadd(4, w.at + TILE, w.stride);
            _tile_dpbf16ps(0, 4, 6);
            if (tokens == 2) _tile_dpbf16ps(1, 4, 7);
            if (rows == 2) _tile_loadd(5, w.at + w.group + TILE, w.stride);
            if (rows == 2) _tile_dpbf16ps(2, 5, 6);
            if (rows == 2 && tokens == 2) _tile_dpbf16ps(3, 5, 7);
        }
        w.at += w.block;
        x.at += PIECES * x.tile;
        x.second += PIECES * x.second_tile;
    }
    _tile_stored(0, sum, 64);
    if (tokens == 2) _tile_stored(1, sum + TOKEN_SUMS, 64);
    if (rows == 2) _tile_stored(2, sum + ROW_SUMS, 64);
    if (rows == 2 && tokens == 2) _tile_stored(3, sum + TOKEN_SUMS + ROW_SUMS, 64);
}

INLINE void multiply_shape(struct weights w, struct inputs x, uint32_t blocks, bool first,
                           float *sum, struct shape s, const int pieces) {
    bool rows = s.rows > GROUP, tokens = s.tokens > GROUP;
    if (rows && tokens) multiply(w, x, blocks, first, sum, pieces, 2, 2);
    else if (rows) multiply(w, x, blocks, first, sum, pieces, 2, 1);
    else if (tokens) multiply(w, x, blocks, first, sum, pieces, 1, 2);
    else multiply(w, x, blocks, first, sum, pieces, 1, 1);
}

#endif
