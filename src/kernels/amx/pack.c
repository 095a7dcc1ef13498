/* SPDX-License-Identifier: Apache-2.0
 * pack.c: activations in two pieces of bf16, as tiles (floats.h). */
#include <string.h>

#include "kernels/amx/floats.h"

/* Of 32 columns the first piece and the second, which is what the first leaves. */
INLINE void split(const float *x, __m512i *first, __m512i *second) {
    __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    *first = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    __m256i l = _mm512_castsi512_si256(*first), h = _mm512_extracti64x4_epi64(*first, 1);
    low = _mm512_sub_ps(low, (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(l), 16));
    high = _mm512_sub_ps(high, (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
    *second = (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* What tokens hold of 16 pairs of columns, by pair; that of one token is a tile as it is. */
INLINE void put(char *tile, const __m512i piece[GROUP], uint32_t tokens) {
    __mmask16 mask = (__mmask16)(0xffff >> (GROUP - tokens));
    __m512i v[GROUP];
    if (tokens == 1) {
        _mm512_storeu_si512(tile, piece[0]);
        return;
    }
    UNROLL for (int t = 0; t < GROUP; t++) v[t] = piece[t];
    transpose(v);
    for (uint32_t pair = 0; pair < GROUP; pair++)
        _mm512_mask_storeu_epi32(tile + 4 * tokens * pair, mask, v[pair]);
}

/* Columns i and i + 16 side by side. */
INLINE __m512i pair_halves(__m512i v) {
    const __m512i from = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
        19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(from, v);
}

INLINE void block(const float *const *row, uint32_t tokens, uint32_t k, uint32_t cols, char *to,
                  const bool halves) {
    __m512i first[GROUP], second[GROUP];
    for (uint32_t t = 0; t < GROUP; t++) {
        float part[BLOCK] = {0};
        first[t] = second[t] = _mm512_setzero_si512();
        if (t >= tokens) continue;
        const float *x = row[t] + k;
        if (cols < BLOCK) x = memcpy(part, x, cols * sizeof *x);
        split(x, &first[t], &second[t]);
        if (halves) first[t] = pair_halves(first[t]);
        if (halves) second[t] = pair_halves(second[t]);
    }
    put(to, first, tokens);
    put(to + 64 * tokens, second, tokens);
}

INLINE void pack(const float *const *row, uint32_t tokens, uint32_t cols, char *to,
                 const bool halves) {
    for (uint32_t k = 0; k < cols; k += BLOCK, to += PIECES * 64 * tokens)
        block(row, tokens, k, cols - k < BLOCK ? cols - k : BLOCK, to, halves);
}

void float_pack_amx(const struct quant *quant, const float *const *row, uint32_t tokens,
                    uint32_t cols, void *packed) {
    if (quant_index_of(quant) == QUANT_f16) pack(row, tokens, cols, packed, true);
    else pack(row, tokens, cols, packed, false);
}
