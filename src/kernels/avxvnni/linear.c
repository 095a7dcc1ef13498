/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: matrix products by vpdpbusd of 256 bits; the method is in body/linear_tile.h. Codes are
 * unsigned, so one body serves all formats, where avx2 has to mind its 16-bit sums. A call works on
 * 2 vectors of rows x 3 tokens: with their accumulators that fills the 16 registers, and 5 loads
 * feed 6 products. */
#include "kernels/avx2/gemv.h"
#include "kernels/body/linear_float.h"
#include "kernels/body/linear_unpack.h"

enum { TOKENS = 3, ROWS = 2 * LANES };

INLINE __m256i four(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

/* 16 rows from row r on of a tile. */
INLINE void mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t r,
                bool first, float *y, size_t y_stride, const int sub, const bool has_min,
                const int tokens) {
    __m256 acc[TOKENS][2];
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int i = 0; i < 2; i++) acc[t][i] =
        first ? _mm256_setzero_ps() : _mm256_loadu_ps(y + t * y_stride + 8 * i);
    for (uint32_t s = 0; s < subs; s++) {
        __m256i dot[TOKENS][2];
        UNROLL for (int t = 0; t < tokens; t++) dot[t][0] = dot[t][1] =
            _mm256_set1_epi32(x[t].start[s]);
        UNROLL for (int j = 0; j < sub / 4; j++) {
            const uint8_t(*code)[4] = tile->code[s * (uint32_t)(sub / 4) + (uint32_t)j] + r;
            __m256i w0 = _mm256_load_si256((const __m256i *)code);
            __m256i w1 = _mm256_load_si256((const __m256i *)(code + LANES));
            UNROLL for (int t = 0; t < tokens; t++) {
                __m256i q = four(x[t].q + s * (uint32_t)sub + 4 * j);
                dot[t][0] = _mm256_dpbusd_avx_epi32(dot[t][0], w0, q);
                dot[t][1] = _mm256_dpbusd_avx_epi32(dot[t][1], w1, q);
            }
        }
        UNROLL for (int i = 0; i < 2; i++) {
            __m256 scale = _mm256_load_ps(&tile->scale[s][r + 8 * (uint32_t)i]);
            __m256 min = _mm256_load_ps(&tile->min[s][r + 8 * (uint32_t)i]);
            UNROLL for (int t = 0; t < tokens; t++) {
                __m256 v = _mm256_fmadd_ps(_mm256_castsi256_ps(dot[t][i]),
                                           _mm256_set1_ps(x[t].d[s]), _mm256_set1_ps(x[t].bias[s]));
                acc[t][i] = _mm256_fmadd_ps(v, scale, acc[t][i]);
                if (has_min)
                    acc[t][i] = _mm256_fmadd_ps(_mm256_set1_ps(x[t].sum[s]), min, acc[t][i]);
            }
        }
    }
    UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int i = 0; i < 2; i++)
        _mm256_storeu_ps(y + t * y_stride + 8 * i, acc[t][i]);
}

INLINE void mul_tokens(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                       uint32_t tokens, bool first, float *y, size_t y_stride, const int sub,
                       const bool has_min) {
    for (; tokens > 0; x += TOKENS, y += TOKENS * y_stride) {
        for (uint32_t r = 0; r < TILE_ROWS; r += ROWS) switch (tokens) {
                case 1: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, 1); break;
                case 2: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, 2); break;
                default: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, TOKENS); break;
            }
        tokens -= tokens < TOKENS ? tokens : TOKENS;
    }
}

#include "kernels/body/linear_unsigned.h"

/* ---- one token ---- */

INLINE dots dot8(codes c, codes q, const uint32_t sub) {
    (void)sub;
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), c, q);
}
#define dot8_wide dot8

#include "kernels/body/gemv.h"

static const struct tile_isa isa = {
    .choose_mul = choose_mul,
    .gemv = TILE_GEMV,
    .unpack = TILE_UNPACK,
};

void act_pack_avxvnni(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                      uint32_t tokens, void *packed) {
    pack_unsigned(quant, row, cols, t, tokens, packed);
}

void linear_avxvnni(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    if (kernels_linear_takes_act(job->quant))
        linear_tiles(job, row0, row1, &isa);
    else
        linear_float(job, row0, row1);
}
