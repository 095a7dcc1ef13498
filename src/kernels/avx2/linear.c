/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: matrix products by vpmaddubsw, whose 16-bit sums saturate; the method is in
 * body/linear_tile.h. How many of its results may be added before they are widened follows from the
 * largest code, |q| being at most 127:
 *   codes to 31: 4 (4 * 2 * 31 * 127 = 31496)      codes to 63: 2 (32004)
 *   any int8 code - offset: 1, as |code - offset| times q with its sign (2 * 128 * 127 = 32512) */
#include "kernels/avx2/gemv.h"
#include "kernels/body/linear_float.h"
#include "kernels/body/linear_pack.h"
#include "kernels/body/linear_unpack.h"

enum { TOKENS = 4 };

INLINE int32_t load32(const int8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* 8 rows from row r on of a tile; `sums` results are added in 16 bits, 0: signed codes. */
INLINE void mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t r,
                bool first, float *y, size_t y_stride, const int sub, const bool has_min,
                const int sums, const int tokens) {
    const __m256i one = _mm256_set1_epi16(1);
    const int group = sums ? sums : 1;
    __m256 acc[TOKENS];
    UNROLL for (int t = 0; t < tokens; t++) acc[t] =
        first ? _mm256_setzero_ps() : _mm256_loadu_ps(y + t * y_stride);
    for (uint32_t s = 0; s < subs; s++) {
        __m256i dot[TOKENS];
        UNROLL for (int t = 0; t < tokens; t++) dot[t] = _mm256_set1_epi32(x[t].start[s]);
        UNROLL for (int j = 0; j < sub / 4; j += group) {
            __m256i words[TOKENS];
            UNROLL for (int i = 0; i < group; i++) {
                const uint8_t *code = tile->code[s * (uint32_t)(sub / 4) + (uint32_t)(j + i)][r];
                __m256i w = _mm256_load_si256((const __m256i *)code), size = w;
                if (sums == 0) {
                    w = _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80));
                    size = _mm256_abs_epi8(w);
                }
                UNROLL for (int t = 0; t < tokens; t++) {
                    __m256i q = _mm256_set1_epi32(load32(x[t].q + s * (uint32_t)sub + 4 * (j + i)));
                    if (sums == 0) q = _mm256_sign_epi8(q, w);
                    __m256i product = _mm256_maddubs_epi16(size, q);
                    words[t] = i == 0 ? product : _mm256_add_epi16(words[t], product);
                }
            }
            UNROLL for (int t = 0; t < tokens; t++) dot[t] =
                _mm256_add_epi32(dot[t], _mm256_madd_epi16(words[t], one));
        }
        __m256 scale = _mm256_load_ps(&tile->scale[s][r]);
        UNROLL for (int t = 0; t < tokens; t++) {
            __m256 v = _mm256_fmadd_ps(_mm256_castsi256_ps(dot[t]), _mm256_set1_ps(x[t].d[s]),
                                       _mm256_set1_ps(x[t].bias[s]));
            acc[t] = _mm256_fmadd_ps(v, scale, acc[t]);
        }
        if (!has_min) continue;
        __m256 min = _mm256_load_ps(&tile->min[s][r]);
        UNROLL for (int t = 0; t < tokens; t++) acc[t] =
            _mm256_fmadd_ps(_mm256_set1_ps(x[t].sum[s]), min, acc[t]);
    }
    UNROLL for (int t = 0; t < tokens; t++) _mm256_storeu_ps(y + t * y_stride, acc[t]);
}

INLINE void mul_tokens(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                       uint32_t tokens, bool first, float *y, size_t y_stride, const int sub,
                       const bool has_min, const int sums) {
    for (; tokens > 0; x += TOKENS, y += TOKENS * y_stride) {
        for (uint32_t r = 0; r < TILE_ROWS; r += LANES) switch (tokens) {
                case 1: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, sums, 1); break;
                case 2: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, sums, 2); break;
                case 3: mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, sums, 3); break;
                default:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, sums, TOKENS);
                    break;
            }
        tokens -= tokens < TOKENS ? tokens : TOKENS;
    }
}

#define MUL(sub, has_min, sums)                                                                \
    (const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t tokens, \
     bool first, float *y, size_t y_stride) {                                                  \
        mul_tokens(tile, x, subs, tokens, first, y, y_stride, sub, has_min, sums);             \
    }
static void mul16_small MUL(16, false, 4)
static void mul16_six_bits MUL(16, false, 2)
static void mul16_signed MUL(16, false, 0)
static void mul16_min MUL(16, true, 4)
static void mul32_small MUL(32, false, 4)
static void mul32_signed MUL(32, false, 0)
static void mul32_min MUL(32, true, 4)

static tile_mul *choose_mul(const struct quant *quant) {
    bool half = quant->sub == 16;
    if (quant->has_min) return half ? mul16_min : mul32_min;
    if (quant->offset == TILE_SIGNED) return half ? mul16_signed : mul32_signed;
    if (quant->offset == 32) return mul16_six_bits;
    return half ? mul16_small : mul32_small;
}

/* ---- one token ---- */

INLINE dots dot8(codes c, codes q, const uint32_t sub) {
    (void)sub;
    return _mm256_madd_epi16(_mm256_maddubs_epi16(c, q), _mm256_set1_epi16(1));
}
INLINE dots dot8_wide(codes c, codes q, const uint32_t sub) {
    __m256i w = _mm256_xor_si256(c, _mm256_set1_epi8((char)0x80));
    return dot8(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w), sub);
}

#include "kernels/body/gemv.h"

static const struct tile_isa isa = {
    .choose_mul = choose_mul,
    .gemv = TILE_GEMV,
    .unpack = TILE_UNPACK,
};

void act_pack_avx2(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed) {
    pack(row, cols, quant->sub, quant->offset == TILE_SIGNED ? 0 : quant->offset,
         (struct tile_act *)packed + t, tokens);
}

void linear_avx2(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    if (kernels_linear_takes_act(job->quant))
        linear_tiles(job, row0, row1, &isa);
    else
        linear_float(job, row0, row1);
}
