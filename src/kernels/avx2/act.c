/* SPDX-License-Identifier: Apache-2.0
 * act.c: rows of activations in 8 bits; numerics and layout in kernels.h. */
#include "kernels/body/act.h"

#include <immintrin.h>

#include "kernels/body/linear.h"

static uint32_t largest(__m256i v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

void act_quantize_avx2(const float *x, uint32_t cols, void *row) {
    struct act_parts to = act_parts(row, cols);
    const __m256i absolute = _mm256_set1_epi32(0x7fffffff);
    for (uint32_t k = 0; k < cols; k += ACT_BLOCK) {
        __m256i q[4], max = _mm256_setzero_si256();
        for (int i = 0; i < 4; i++) {
            __m256i bits = _mm256_loadu_si256((const __m256i *)(x + k + 8 * i));
            max = _mm256_max_epu32(max, _mm256_and_si256(bits, absolute));
        }
        float inverse = act_scale(largest(max), to.d++);
        __m256i some = _mm256_set1_epi32(inverse == 0 ? 0 : -1);
        for (int i = 0; i < 4; i++) {
            __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * i), _mm256_set1_ps(inverse));
            q[i] = _mm256_and_si256(_mm256_cvtps_epi32(v), some);
        }
        __m256i words01 = _mm256_packs_epi32(q[0], q[1]), words23 = _mm256_packs_epi32(q[2], q[3]);
        __m256i bytes = _mm256_packs_epi16(words01, words23); /* dwords 0 2 4 6, 1 3 5 7 */
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)(to.q + k), bytes);
        __m256i sums =
            _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
        sums = _mm256_hadd_epi32(sums, sums); /* dwords: first, second in both halves */
        __m128i both =
            _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        _mm_storel_epi64((__m128i *)to.sum16, both);
        to.sum16 += 2;
    }
}
