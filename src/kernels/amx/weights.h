/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: weights as tiles of bf16 pieces. */
#ifndef KERNELS_AMX_WEIGHTS_H
#define KERNELS_AMX_WEIGHTS_H

#include <string.h>

#include "kernels/amx/floats.h"

/* 32 columns of a row, or fewer and zeros, as bf16 (`pieces` 1) or as half floats. An F16 has 11
 * bits, of which the upper half of its FP32 holds 8; what is left fits the second piece whole. */
INLINE void put_weights(const uint8_t *from, uint32_t cols, char *to, const int pieces) {
    uint16_t part[BLOCK] = {0};
    if (cols < BLOCK) from = memcpy(part, from, cols * sizeof *part);
    if (pieces == 1) {
        _mm512_store_si512(to, _mm512_loadu_si512(from));
        return;
    }
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    __m512i a = (__m512i)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
    __m512i b = (__m512i)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from + 1));
    __m512i a0 = _mm512_and_si512(a, upper), b0 = _mm512_and_si512(b, upper);
    __m512i a1 = (__m512i)_mm512_sub_ps((__m512)a, (__m512)a0); /* upper halves alone */
    __m512i b1 = (__m512i)_mm512_sub_ps((__m512)b, (__m512)b0);
    _mm512_store_si512(to, _mm512_or_si512(b0, _mm512_srli_epi32(a, 16)));
    _mm512_store_si512(to + TILE, _mm512_or_si512(b1, _mm512_srli_epi32(a1, 16)));
}

/* 32 columns, or fewer and zeros, of up to 16 rows as a tile. */
INLINE void put_tile(const uint8_t *from, size_t stride, uint32_t rows, uint32_t cols, char *to,
                     const int pieces) {
    if (rows == GROUP && cols == BLOCK)
        for (uint32_t i = 0; i < GROUP; i++)
            put_weights(from + i * stride, BLOCK, to + 64 * i, pieces);
    else
        for (uint32_t i = 0; i < rows; i++)
            put_weights(from + i * stride, cols, to + 64 * i, pieces);
}

#endif
