/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: matrix products by sdot; the method is in body/linear_tile.h. Both operands are signed,
 * so codes of offset 128 are taken as the int8 values they stand for; all others are below 64. */
#include "kernels/neon/gemv.h"
#include "kernels/body/gemv.h"
#include "kernels/body/linear_float.h"
#include "kernels/body/linear_pack.h"

enum { TOKENS = 4, ROWS = 8 };

enum { GROUP = 4 * TILE_ROWS }; /* bytes of four columns */

/* Four columns of 8 rows times the activations in one lane of q. */
#define DOT(code, lane)                                             \
    do {                                                            \
        const uint8_t *w = (code) + (lane) * GROUP;                 \
        int8x16_t w0 = load_code(w, is_signed);                     \
        int8x16_t w1 = load_code(w + 16, is_signed);                \
        UNROLL for (int t = 0; t < tokens; t++) {                   \
            dot[t][0] = vdotq_laneq_s32(dot[t][0], w0, q[t], lane); \
            dot[t][1] = vdotq_laneq_s32(dot[t][1], w1, q[t], lane); \
        }                                                           \
    } while (0)

INLINE int8x16_t load_code(const uint8_t *p, const bool is_signed) {
    uint8x16_t w = vld1q_u8(p);
    return vreinterpretq_s8_u8(is_signed ? veorq_u8(w, vdupq_n_u8(0x80)) : w);
}

INLINE void mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t r,
                bool first, float *y, size_t y_stride, const int sub, const bool has_min,
                const bool is_signed, const int tokens) {
    float32x4_t acc[TOKENS][2];
    UNROLL for (int t = 0; t < tokens; t++) {
        acc[t][0] = first ? vdupq_n_f32(0) : vld1q_f32(y + t * y_stride);
        acc[t][1] = first ? vdupq_n_f32(0) : vld1q_f32(y + t * y_stride + 4);
    }
    for (uint32_t s = 0; s < subs; s++) {
        const uint8_t *code = tile->code[s * (uint32_t)(sub / 4)][r];
        const uint32_t k = s * (uint32_t)sub;
        int32x4_t dot[TOKENS][2];
        UNROLL for (int t = 0; t < tokens; t++) dot[t][0] = dot[t][1] = vdupq_n_s32(x[t].start[s]);
        UNROLL for (int i = 0; i < sub / 16; i++) {
            int8x16_t q[TOKENS];
            UNROLL for (int t = 0; t < tokens; t++) q[t] = vld1q_s8(x[t].q + k + 16 * i);
            DOT(code + 4 * i * GROUP, 0);
            DOT(code + 4 * i * GROUP, 1);
            DOT(code + 4 * i * GROUP, 2);
            DOT(code + 4 * i * GROUP, 3);
        }
        UNROLL for (int half = 0; half < 2; half++) {
            float32x4_t scale = vld1q_f32(&tile->scale[s][r + 4 * half]);
            float32x4_t min = vld1q_f32(&tile->min[s][r + 4 * half]);
            UNROLL for (int t = 0; t < tokens; t++) {
                float32x4_t v = vfmaq_n_f32(vdupq_n_f32(x[t].bias[s]),
                                            vreinterpretq_f32_s32(dot[t][half]), x[t].d[s]);
                acc[t][half] = vfmaq_f32(acc[t][half], v, scale);
                if (has_min) acc[t][half] = vfmaq_n_f32(acc[t][half], min, x[t].sum[s]);
            }
        }
    }
    UNROLL for (int t = 0; t < tokens; t++) {
        vst1q_f32(y + t * y_stride, acc[t][0]);
        vst1q_f32(y + t * y_stride + 4, acc[t][1]);
    }
}

INLINE void mul_tokens(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                       uint32_t tokens, bool first, float *y, size_t y_stride, const int sub,
                       const bool has_min, const bool is_signed) {
    for (; tokens > 0; x += TOKENS, y += TOKENS * y_stride) {
        for (uint32_t r = 0; r < TILE_ROWS; r += ROWS) switch (tokens) {
                case 1:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, is_signed, 1);
                    break;
                case 2:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, is_signed, 2);
                    break;
                case 3:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, is_signed, 3);
                    break;
                default:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, is_signed, TOKENS);
                    break;
            }
        tokens -= tokens < TOKENS ? tokens : TOKENS;
    }
}

#define MUL(sub, has_min, is_signed)                                                           \
    (const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t tokens, \
     bool first, float *y, size_t y_stride) {                                                  \
        mul_tokens(tile, x, subs, tokens, first, y, y_stride, sub, has_min, is_signed);        \
    }
static void mul16 MUL(16, false, false)
static void mul16_signed MUL(16, false, true)
static void mul16_min MUL(16, true, false)
static void mul32 MUL(32, false, false)
static void mul32_signed MUL(32, false, true)
static void mul32_min MUL(32, true, false)

static tile_mul *choose_mul(const struct quant *quant) {
    bool half = quant->sub == 16;
    if (quant->has_min) return half ? mul16_min : mul32_min;
    if (quant->offset == TILE_SIGNED) return half ? mul16_signed : mul32_signed;
    return half ? mul16 : mul32;
}

static const struct tile_isa isa = {
    .choose_mul = choose_mul,
    .gemv = TILE_GEMV,
    .unpack = TILE_UNPACK,
};

void act_pack_neon(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed) {
    pack(row, cols, quant->sub, quant->offset == TILE_SIGNED ? 0 : quant->offset,
         (struct tile_act *)packed + t, tokens);
}

void linear_neon(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    if (kernels_linear_takes_act(job->quant))
        linear_tiles(job, row0, row1, &isa);
    else
        linear_float(job, row0, row1);
}
