/* SPDX-License-Identifier: Apache-2.0
 *
 * floats.h: how F16 and BF16 products lie in memory for tdpbf16ps (numerics in kernels.h). Blocks
 * are 32 columns. A tile of weights is 16 rows of 32 columns, which is how BF16 weights lie in
 * their file; a tile of activations is 16 pairs of columns of a group of 16 tokens:
 *
 *     packed[group][block][piece][pair][token][2]   bf16; a tile of 16 tokens is 1 KiB
 *
 * A pair is columns 2 i and 2 i + 1 of a block for BF16 weights, i and i + 16 for F16: what two
 * conversions give is brought together without shuffles. The last group has as many tokens as are
 * left. Columns that fill up the last block are zero. */
#ifndef KERNELS_AMX_FLOATS_H
#define KERNELS_AMX_FLOATS_H

#include <immintrin.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/body/inline.h"
#include "kernels/body/linear.h"

enum {
    BLOCK = 32,  /* columns of a tile */
    GROUP = 16,  /* rows or tokens of a tile */
    PIECES = 2,  /* of an activation */
    TILE = 1024, /* bytes, of 16 rows or tokens */
    ROWS = 64,   /* of a call's inner loops, tokens and columns of them */
    TOKENS = 256,
    DEPTH = 256,
    WEIGHT_PIECES = 2, /* at most */
};

struct scratch {
    alignas(64) char w[ROWS / GROUP][DEPTH / BLOCK][WEIGHT_PIECES][TILE];
    alignas(64) float sum[TOKENS / GROUP][ROWS / GROUP][GROUP][GROUP]; /* [row][token] */
};
_Static_assert(sizeof(struct scratch) <= LINEAR_SCRATCH, "fits");

INLINE uint32_t at_most(uint32_t n, uint32_t limit) { return n < limit ? n : limit; }
INLINE uint32_t blocks_of(uint32_t cols) { return (cols + BLOCK - 1) / BLOCK; }

/* v[i][j] and v[j][i] change places. */
INLINE void transpose(__m512i v[16]) {
    __m512i a[16];
    UNROLL for (int i = 0; i < 16; i += 2) { /* pairs of rows: dwords */
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) { /* four rows: 128 bits hold a column */
        v[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++) { /* v[4 q + i]: rows 4 q .., columns i, i + 4, i + 8, ... */
        a[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
        a[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        a[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
        a[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i32x4(a[i], a[i + 8], 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(a[i], a[i + 8], 0xdd);
        v[i + 4] = _mm512_shuffle_i32x4(a[i + 4], a[i + 12], 0x88);
        v[i + 12] = _mm512_shuffle_i32x4(a[i + 4], a[i + 12], 0xdd);
    }
}

#endif
