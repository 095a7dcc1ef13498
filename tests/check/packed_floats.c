/* SPDX-License-Identifier: Apache-2.0
 * packed_floats.c: see packed_floats.h. Slow: one column after the other. */
#include "packed_floats.h"

#include <math.h>

#include "quant/half.h"

enum { BLOCK = 32 };

/* A denormal is a zero. */
static float flush(float v) {
    return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v;
}

static float bf16_nearest(float v) {
    uint32_t bits = half_bits(flush(v));
    if (isnan(v)) return v;
    return half_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

struct two { float v[2]; };

static struct two of_input(float x) {
    struct two out = {{bf16_nearest(x)}};
    out.v[1] = bf16_nearest(x - out.v[0]);
    return out;
}

static struct two of_weight(const struct quant *quant, const char *p) {
    float w;
    quant->decode(p, &w, 1);
    struct two out = {{half_float(half_bits(w) & 0xffff0000)}};
    out.v[1] = w - out.v[0];
    return out;
}

static float add_block(float y, const struct two *w, int of_w, const struct two *x, int of_x,
                       bool alternate) {
    float half[2] = {0, 0};
    for (int k = 0; k < BLOCK; k++) {
        float *h = &half[alternate ? k % 2 : k / 16];
        *h = flush(fmaf(flush(w[k].v[of_w]), flush(x[k].v[of_x]), *h));
    }
    return flush(flush(y) + flush(half[0] + half[1]));
}

static float product(const struct linear_job *job, const float *x, const char *w) {
    float y = 0;
    bool f16 = quant_index_of(job->quant) == QUANT_f16;
    for (uint32_t k = 0; k < job->cols; k += BLOCK) {
        struct two a[BLOCK] = {{{0}}}, b[BLOCK] = {{{0}}};
        for (uint32_t i = 0; i < BLOCK && k + i < job->cols; i++) {
            a[i] = of_weight(job->quant, w + (size_t)(k + i) * 2);
            b[i] = of_input(x[k + i]);
        }
        y = add_block(y, a, 0, b, 1, !f16);
        y = add_block(y, a, 0, b, 0, !f16);
        if (f16) y = add_block(y, a, 1, b, 0, !f16);
    }
    return y;
}

void packed_floats_linear(const struct linear_job *job, const float *x, uint32_t row0,
                          uint32_t row1) {
    for (uint32_t t = 0; t < job->tokens; t++)
        for (uint32_t r = row0; r < row1; r++) {
            const char *w = (const char *)job->w + r * job->row_bytes;
            float y = product(job, x + (size_t)t * job->cols, w);
            job->y[t * job->y_stride + r] = job->bias ? y + job->bias[r] : y;
        }
}
