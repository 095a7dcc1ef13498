/* SPDX-License-Identifier: Apache-2.0
 *
 * mlstm.c: the matrix memory of xLSTM (arXiv 2405.04517, equations 19 to 27): with gates f and i
 * that are held back by exp(m), m the largest exponent so far,
 *     S = f S + k (x) (i * v); n = f n + i * k
 *     y = scale * S^T q / (max(|scale * n . q|, exp(-m)) + eps) */
#include <math.h>

#include "kernels/ref/ref.h"

static void one_token(const struct mlstm_job *j, uint32_t t) {
    const float *q = j->q + t * j->k_stride, *k = j->k + t * j->k_stride;
    const float *v = j->v + t * j->v_stride;
    float *y = j->y + t * j->v_stride, *n = j->state + (size_t)j->k_dim * j->v_dim;
    float *m = n + j->k_dim;
    double gate = j->gate[t * j->gate_stride];
    double old = (double)j->log_decay[t * j->gate_stride] + *m, top = old > gate ? old : gate;
    double f = exp(old - top), e = exp(gate - top), dot = 0;
    for (uint32_t i = 0; i < j->k_dim; i++) {
        n[i] = (float)(f * n[i] + e * k[i]);
        dot += (double)n[i] * q[i];
    }
    double below = fmax(fabs(j->scale * dot), exp(-top)) + j->eps;
    for (uint32_t c = 0; c < j->v_dim; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < j->k_dim; i++) {
            float *s = &j->state[(size_t)i * j->v_dim + c];
            *s = (float)(f * *s + k[i] * (e * v[c]));
            sum += (double)q[i] * *s;
        }
        y[c] = (float)(j->scale * sum / below);
    }
    *m = (float)top;
}

void mlstm_ref(const struct mlstm_job *j) {
    for (uint32_t t = 0; t < j->tokens; t++) one_token(j, t);
}
