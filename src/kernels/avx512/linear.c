/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: matrix products by vpdpbusd; the method is in body/linear_tile.h. A call works on 2 x 8
 * vectors of dot products: per 4 columns 10 loads feed 16 of them, and 16 chains hide the latency
 * of 5 cycles, so the two vector ports are the limit (measured: 97% of it). */
#include "kernels/avx512/gemv.h"
#include "kernels/avx512/lanes.h"
#include "kernels/body/linear_float.h"
#include "kernels/body/linear_unpack.h"

INLINE int32_t load32(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

enum { TOKENS = 8 };

INLINE void mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, bool first,
                float *y, size_t y_stride, const int sub, const bool has_min, const int tokens) {
    __m512 acc[TOKENS][2];
    UNROLL for (int t = 0; t < tokens; t++) {
        acc[t][0] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y + t * y_stride);
        acc[t][1] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(y + t * y_stride + 16);
    }
    for (uint32_t s = 0; s < subs; s++) {
        __m512i dot[TOKENS][2];
        if (s * sub % 64 == 0)
            UNROLL for (int t = 0; t < tokens; t++) __builtin_prefetch(x[t + tokens].q + s * sub);
        if (s * sub % 128 == 0) /* d, bias, start, sum */
            UNROLL for (int t = 0; t < tokens; t++)
                __builtin_prefetch((const char *)x[t + tokens].d + s * sub);
        UNROLL for (int t = 0; t < tokens; t++) dot[t][0] = dot[t][1] =
            _mm512_set1_epi32(x[t].start[s]);
        UNROLL for (int j = 0; j < sub / 4; j++) {
            const uint8_t(*code)[4] = tile->code[s * (sub / 4) + j];
            __m512i w0 = _mm512_load_si512(code), w1 = _mm512_load_si512(code + 16);
            UNROLL for (int t = 0; t < tokens; t++) {
                __m512i q = _mm512_set1_epi32(load32(x[t].q + s * sub + 4 * j));
                dot[t][0] = _mm512_dpbusd_epi32(dot[t][0], w0, q);
                dot[t][1] = _mm512_dpbusd_epi32(dot[t][1], w1, q);
            }
        }
        __m512 scale0 = _mm512_load_ps(tile->scale[s]);
        __m512 scale1 = _mm512_load_ps(tile->scale[s] + 16);
        UNROLL for (int t = 0; t < tokens; t++) {
            __m512 d = _mm512_set1_ps(x[t].d[s]), bias = _mm512_set1_ps(x[t].bias[s]);
            __m512 v0 = _mm512_fmadd_ps(_mm512_castsi512_ps(dot[t][0]), d, bias);
            __m512 v1 = _mm512_fmadd_ps(_mm512_castsi512_ps(dot[t][1]), d, bias);
            acc[t][0] = _mm512_fmadd_ps(v0, scale0, acc[t][0]);
            acc[t][1] = _mm512_fmadd_ps(v1, scale1, acc[t][1]);
        }
        if (!has_min) continue;
        __m512 min0 = _mm512_load_ps(tile->min[s]), min1 = _mm512_load_ps(tile->min[s] + 16);
        UNROLL for (int t = 0; t < tokens; t++) {
            __m512 sum = _mm512_set1_ps(x[t].sum[s]);
            acc[t][0] = _mm512_fmadd_ps(sum, min0, acc[t][0]);
            acc[t][1] = _mm512_fmadd_ps(sum, min1, acc[t][1]);
        }
    }
    UNROLL for (int t = 0; t < tokens; t++) {
        _mm512_storeu_ps(y + t * y_stride, acc[t][0]);
        _mm512_storeu_ps(y + t * y_stride + 16, acc[t][1]);
    }
}

INLINE void mul_tokens(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                       uint32_t tokens, bool first, float *y, size_t y_stride, const int sub,
                       const bool has_min) {
    for (; tokens > 0; x += TOKENS, y += TOKENS * y_stride) {
        switch (tokens) {
            case 1: mul(tile, x, subs, first, y, y_stride, sub, has_min, 1); break;
            case 2: mul(tile, x, subs, first, y, y_stride, sub, has_min, 2); break;
            case 3: mul(tile, x, subs, first, y, y_stride, sub, has_min, 3); break;
            case 4: mul(tile, x, subs, first, y, y_stride, sub, has_min, 4); break;
            case 5: mul(tile, x, subs, first, y, y_stride, sub, has_min, 5); break;
            case 6: mul(tile, x, subs, first, y, y_stride, sub, has_min, 6); break;
            case 7: mul(tile, x, subs, first, y, y_stride, sub, has_min, 7); break;
            default: mul(tile, x, subs, first, y, y_stride, sub, has_min, TOKENS); break;
        }
        tokens -= tokens < TOKENS ? tokens : TOKENS;
    }
}

#include "kernels/body/linear_unsigned.h"

static const struct tile_isa isa = {
    .choose_mul = choose_mul,
    .gemv = {[QUANT_q4_0] = gemv_q4_0_avx512,
             [QUANT_q4_1] = gemv_q4_1_avx512,
             [QUANT_q5_0] = gemv_q5_0_avx512,
             [QUANT_q5_1] = gemv_q5_1_avx512,
             [QUANT_q8_0] = gemv_q8_0_avx512,
             [QUANT_q2_k] = gemv_q2_k_avx512,
             [QUANT_q3_k] = gemv_q3_k_avx512,
             [QUANT_q4_k] = gemv_q4_k_avx512,
             [QUANT_q5_k] = gemv_q5_k_avx512,
             [QUANT_q6_k] = gemv_q6_k_avx512,
             [QUANT_iq4_nl] = gemv_iq4_nl_avx512,
             [QUANT_iq4_xs] = gemv_iq4_xs_avx512,
             [QUANT_mxfp4] = gemv_mxfp4_avx512},
    .unpack = TILE_UNPACK,
};

void act_pack_avx512(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                     uint32_t tokens, void *packed) {
    pack_unsigned(quant, row, cols, t, tokens, packed);
}

void linear_avx512(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    if (kernels_linear_takes_act(job->quant))
        linear_tiles(job, row0, row1, &isa);
    else
        linear_float(job, row0, row1);
}
