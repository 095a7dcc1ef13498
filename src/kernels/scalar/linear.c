/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: the arithmetic of kernels.h written down plainly, for every format by its unpack or
 * decode; the tables of all ISAs are held against it. y serves as the accumulator. */
#include <math.h>

#include "kernels/body/act.h"
#include "kernels/body/linear.h"

enum { MAX_BLOCK = 256, LANES = 16 };

bool kernels_linear_takes_act(const struct quant *quant) { return quant->unpack != NULL; }

/* acc continued over one block that starts at column k. */
static float block_product(const struct quant *quant, const uint8_t *code, const float *scale,
                           const float *min, const struct act *x, uint32_t k, float acc) {
    for (uint32_t s = 0; s < quant->block / quant->sub; s++, k += quant->sub) {
        int32_t dot = 0, sum = 0;
        for (uint32_t i = 0; i < quant->sub; i++)
            dot += (code[s * quant->sub + i] - quant->offset) * x->q[k + i];
        for (uint32_t i = 0; i < quant->sub; i += 16) sum += x->sum16[(k + i) / 16];
        float d = x->d[k / ACT_BLOCK];
        acc = fmaf((float)dot * d, scale[s], acc);
        if (quant->has_min) acc = fmaf(-(d * (float)sum), min[s], acc);
    }
    return acc;
}

static void row_int(const struct linear_job *job, const uint8_t *w, float *y) {
    const struct quant *quant = job->quant;
    uint8_t code[MAX_BLOCK];
    float scale[MAX_BLOCK / 16], min[MAX_BLOCK / 16];
    for (uint32_t t = 0; t < job->tokens; t++) y[t * job->y_stride] = 0;
    for (uint32_t k = 0; k < job->cols; k += quant->block, w += quant->bytes) {
        quant->unpack(w, code, scale, min);
        for (uint32_t t = 0; t < job->tokens; t++) {
            struct act x = act_row(job->x, job->cols, t);
            float *acc = y + t * job->y_stride;
            *acc = block_product(quant, code, scale, min, &x, k, *acc);
        }
    }
}

static float lanes_sum(float *lane) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static void row_float(const struct linear_job *job, const uint8_t *w, float *y) {
    for (uint32_t t = 0; t < job->tokens; t++) {
        const float *x = (const float *)job->x + (size_t)t * job->cols;
        float lane[LANES] = {0};
        for (uint32_t k = 0; k < job->cols; k += LANES) {
            float a[LANES] = {0}, b[LANES] = {0};
            uint32_t n = job->cols - k < LANES ? job->cols - k : LANES;
            job->quant->decode(w + (size_t)k * job->quant->bytes, a, n);
            for (uint32_t l = 0; l < n; l++) b[l] = x[k + l];
            for (uint32_t l = 0; l < LANES; l++) lane[l] = fmaf(b[l], a[l], lane[l]);
        }
        y[t * job->y_stride] = lanes_sum(lane);
    }
}

void linear_scalar(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    for (uint32_t r = row0; r < row1; r++) {
        const uint8_t *w = (const uint8_t *)job->w + r * job->row_bytes;
        if (kernels_linear_takes_act(job->quant))
            row_int(job, w, job->y + r);
        else
            row_float(job, w, job->y + r);
        if (job->bias)
            for (uint32_t t = 0; t < job->tokens; t++)
                job->y[t * job->y_stride + r] += job->bias[r];
    }
}
