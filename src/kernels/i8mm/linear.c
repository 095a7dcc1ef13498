/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: matrix products by smmla, which multiplies 8 columns of 2 rows by those of 2 tokens: 32
 * products where sdot has 16, in lanes [row 0, token 0] [row 0, token 1] [row 1, token 0] [row 1,
 * token 1]. So a tile is rearranged once, for all tokens, and tokens are packed in pairs; the float
 * chain runs in these lanes. One token's products are those of neon/. */
#include "kernels/neon/gemv.h"
#include "kernels/body/gemv.h"
#include "kernels/body/linear_float.h"
#include "kernels/body/linear_pack.h"

/* Two tokens in the place of their two tile_act. The last of an odd number is packed as it is. */
struct pair_act {
    alignas(64) int8_t q[TILE_COLS / 8][2][8];
    float d[TILE_SUBS][2];
    float bias[TILE_SUBS][2];
    int32_t start[TILE_SUBS][2];
    float sum[TILE_SUBS][2];
};
_Static_assert(sizeof(struct pair_act) == 2 * sizeof(struct tile_act), "a pair's place");

enum { PAIRS = 2, ROWS = 8 };

/* ---- two tokens, or one twice ---- */

struct beside {
    const struct tile_act *x;
    bool alone;
};

/* 8 columns from k + i on. */
INLINE int8x16_t two_q(struct beside b, uint32_t k, const int i) {
    const int8_t *q = b.x->q + (b.alone ? k : 2 * k) + (b.alone ? i : 2 * i);
    return b.alone ? vcombine_s8(vld1_s8(q), vld1_s8(q)) : vld1q_s8(q);
}
INLINE float32x4_t two(const float *pair, const float *alone, struct beside b, uint32_t s) {
    if (b.alone) return vdupq_n_f32(alone[s]);
    float32x2_t v = vld1_f32(pair + (size_t)2 * s);
    return vcombine_f32(v, v);
}
INLINE float32x4_t two_d(struct beside b, uint32_t s) {
    return two(((const struct pair_act *)(const void *)b.x)->d[0], b.x->d, b, s);
}
INLINE float32x4_t two_bias(struct beside b, uint32_t s) {
    return two(((const struct pair_act *)(const void *)b.x)->bias[0], b.x->bias, b, s);
}
INLINE float32x4_t two_sum(struct beside b, uint32_t s) {
    return two(((const struct pair_act *)(const void *)b.x)->sum[0], b.x->sum, b, s);
}
INLINE int32x4_t two_start(struct beside b, uint32_t s) {
    if (b.alone) return vdupq_n_s32(b.x->start[s]);
    int32x2_t v = vld1_s32(((const struct pair_act *)(const void *)b.x)->start[s]);
    return vcombine_s32(v, v);
}

/* 4 rows of each token, to and from lanes of two rows. */
INLINE void load_rows(const float *y0, const float *y1, float32x4_t acc[2]) {
    float32x4_t a = vld1q_f32(y0), b = vld1q_f32(y1);
    acc[0] = vzip1q_f32(a, b);
    acc[1] = vzip2q_f32(a, b);
}
INLINE void store_rows(float *y0, float *y1, const float32x4_t acc[2], const bool alone) {
    vst1q_f32(y0, vuzp1q_f32(acc[0], acc[1]));
    if (!alone) vst1q_f32(y1, vuzp2q_f32(acc[0], acc[1]));
}

/* ---- products ---- */

/* Of each 4 rows [k..k+4) and [k+4..k+8): in the first's place rows 0 and 1, in the second's rows 2
 * and 3; codes of offset TILE_SIGNED become the int8 values they stand for. */
static void arrange(struct linear_tile *tile, const struct quant *quant, uint32_t cols) {
    uint8x16_t sign = vdupq_n_u8(quant->offset == TILE_SIGNED ? TILE_SIGNED : 0);
    for (uint32_t j = 0; j < cols / 4; j += 2)
        for (uint32_t r = 0; r < TILE_ROWS; r += 4) {
            uint8_t *first = tile->code[j][r], *second = tile->code[j + 1][r];
            uint32x4_t a = vreinterpretq_u32_u8(veorq_u8(vld1q_u8(first), sign));
            uint32x4_t b = vreinterpretq_u32_u8(veorq_u8(vld1q_u8(second), sign));
            vst1q_u8(first, vreinterpretq_u8_u32(vzip1q_u32(a, b)));
            vst1q_u8(second, vreinterpretq_u8_u32(vzip2q_u32(a, b)));
        }
}

/* Sub-block s of 8 rows from row r on. */
INLINE void dot_products(const struct linear_tile *tile, const struct tile_act *x, uint32_t s,
                         uint32_t r, const int sub, const int pairs, const bool alone,
                         int32x4_t dot[PAIRS][ROWS / 2]) {
    enum { GROUP = sizeof tile->code[0] };
    const uint8_t *code = tile->code[s * (uint32_t)(sub / 4)][r];
    UNROLL for (int p = 0; p < pairs; p++) {
        int32x4_t start = two_start((struct beside){x + 2 * p, alone}, s);
        UNROLL for (int i = 0; i < ROWS / 2; i++) dot[p][i] = start;
    }
    UNROLL for (int j = 0; j < sub / 8; j++) {
        int8x16_t w[ROWS / 2];
        UNROLL for (int i = 0; i < ROWS / 2; i++) w[i] = vreinterpretq_s8_u8(
            vld1q_u8(code + (2 * j + i % 2) * GROUP + 16 * (i / 2)));
        UNROLL for (int p = 0; p < pairs; p++) {
            int8x16_t q = two_q((struct beside){x + 2 * p, alone}, s * (uint32_t)sub, 8 * j);
            UNROLL for (int i = 0; i < ROWS / 2; i++) dot[p][i] = vmmlaq_s32(dot[p][i], w[i], q);
        }
    }
}

INLINE void mul(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t r,
                bool first, float *y, size_t y_stride, const int sub, const bool has_min,
                const int pairs, const bool alone) {
    float32x4_t acc[PAIRS][ROWS / 2];
    const size_t next = alone ? 0 : y_stride;
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int h = 0; h < 2; h++) {
        float *at = y + 2 * p * y_stride + 4 * h;
        if (first) acc[p][2 * h] = acc[p][2 * h + 1] = vdupq_n_f32(0);
        else load_rows(at, at + next, acc[p] + 2 * h);
    }
    for (uint32_t s = 0; s < subs; s++) {
        int32x4_t dot[PAIRS][ROWS / 2];
        dot_products(tile, x, s, r, sub, pairs, alone, dot);
        float32x4_t scale[ROWS / 2], min[ROWS / 2];
        UNROLL for (int h = 0; h < 2; h++) {
            const float *scales = &tile->scale[s][r + 4 * h], *mins = &tile->min[s][r + 4 * h];
            load_rows(scales, scales, scale + 2 * h);
            load_rows(mins, mins, min + 2 * h);
        }
        UNROLL for (int p = 0; p < pairs; p++) {
            struct beside b = {x + 2 * p, alone};
            float32x4_t d = two_d(b, s), bias = two_bias(b, s), sum = two_sum(b, s);
            UNROLL for (int i = 0; i < ROWS / 2; i++) {
                float32x4_t v = vfmaq_f32(bias, vreinterpretq_f32_s32(dot[p][i]), d);
                acc[p][i] = vfmaq_f32(acc[p][i], v, scale[i]);
                if (has_min) acc[p][i] = vfmaq_f32(acc[p][i], min[i], sum);
            }
        }
    }
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int h = 0; h < 2; h++) {
        float *at = y + 2 * p * y_stride + 4 * h;
        store_rows(at, at + next, acc[p] + 2 * h, alone);
    }
}

INLINE void mul_tokens(const struct linear_tile *tile, const struct tile_act *x, uint32_t subs,
                       uint32_t tokens, bool first, float *y, size_t y_stride, const int sub,
                       const bool has_min) {
    while (tokens > 0) {
        uint32_t pairs = tokens / 2 < PAIRS ? tokens / 2 : PAIRS, n = pairs ? 2 * pairs : 1;
        for (uint32_t r = 0; r < TILE_ROWS; r += ROWS) switch (pairs) {
                case 0:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, 1, true);
                    break;
                case 1:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, 1, false);
                    break;
                default:
                    mul(tile, x, subs, r, first, y + r, y_stride, sub, has_min, PAIRS, false);
                    break;
            }
        x += n;
        y += n * y_stride;
        tokens -= n;
    }
}

#define MUL(sub, has_min)                                                                      \
    (const struct linear_tile *tile, const struct tile_act *x, uint32_t subs, uint32_t tokens, \
     bool first, float *y, size_t y_stride) {                                                  \
        mul_tokens(tile, x, subs, tokens, first, y, y_stride, sub, has_min);                   \
    }
static void mul16 MUL(16, false)
static void mul16_min MUL(16, true)
static void mul32 MUL(32, false)
static void mul32_min MUL(32, true)

static tile_mul *choose_mul(const struct quant *quant) {
    if (quant->sub == 16) return quant->has_min ? mul16_min : mul16;
    return quant->has_min ? mul32_min : mul32;
}

static const struct tile_isa isa = {
    .choose_mul = choose_mul,
    .gemv = TILE_GEMV,
    .unpack = TILE_UNPACK,
    .arrange = arrange,
};

/* ---- packing ---- */

static void pack_half(const struct tile_act *one, uint32_t cols, uint32_t subs, uint32_t half,
                      struct pair_act *to) {
    for (uint32_t k = 0; k < cols; k += 8) memcpy(to->q[k / 8][half], one->q + k, 8);
    for (uint32_t s = 0; s < subs; s++) {
        to->d[s][half] = one->d[s];
        to->bias[s][half] = one->bias[s];
        to->start[s][half] = one->start[s];
        to->sum[s][half] = one->sum[s];
    }
}

/* Halves of a pair may be written at the same time. */
void act_pack_i8mm(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed) {
    int32_t offset = quant->offset == TILE_SIGNED ? 0 : quant->offset;
    struct tile_act *to = (struct tile_act *)packed + t / 2 * 2, one;
    if ((t | 1) >= tokens) { /* no partner */
        pack(row, cols, quant->sub, offset, to, tokens);
        return;
    }
    for (uint32_t k = 0; k < cols; k += TILE_COLS, to += tokens) {
        uint32_t n = cols - k < TILE_COLS ? cols - k : TILE_COLS;
        pack_tile(row, k, n, quant->sub, offset, &one);
        pack_half(&one, n, n / quant->sub, t % 2, (struct pair_act *)(void *)to);
    }
}

void linear_i8mm(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    if (kernels_linear_takes_act(job->quant))
        linear_tiles(job, row0, row1, &isa);
    else
        linear_float(job, row0, row1);
}
