/* SPDX-License-Identifier: Apache-2.0
 * act.c: rows of activations in 8 bits; numerics and layout in kernels.h. */
#include "kernels/body/act.h"

#include <immintrin.h>

#include "kernels/body/linear.h"

void act_quantize_avx512(const float *x, uint32_t cols, void *row) {
    struct act_parts to = act_parts(row, cols);
    const __m512i absolute = _mm512_set1_epi32(0x7fffffff);
    for (uint32_t k = 0; k < cols; k += ACT_BLOCK) {
        __m512 a = _mm512_loadu_ps(x + k), b = _mm512_loadu_ps(x + k + 16);
        __m512i max = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), absolute),
                                       _mm512_and_si512(_mm512_castps_si512(b), absolute));
        float inverse = act_scale(_mm512_reduce_max_epu32(max), to.d++);
        __mmask16 some = inverse == 0 ? 0 : 0xffff;
        __m512 scale = _mm512_set1_ps(inverse);
        __m512i qa = _mm512_maskz_cvtps_epi32(some, _mm512_mul_ps(a, scale));
        __m512i qb = _mm512_maskz_cvtps_epi32(some, _mm512_mul_ps(b, scale));
        _mm_storeu_si128((__m128i *)(to.q + k), _mm512_cvtepi32_epi8(qa));
        _mm_storeu_si128((__m128i *)(to.q + k + 16), _mm512_cvtepi32_epi8(qb));
        *to.sum16++ = _mm512_reduce_add_epi32(qa);
        *to.sum16++ = _mm512_reduce_add_epi32(qb);
    }
}
