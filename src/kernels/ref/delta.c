/* SPDX-License-Identifier: Apache-2.0
 *
 * delta.c: for each token, with a state S [k_dim][v_dim],
 *     S = diag(a) S
 *     S = S + k (x) (beta * (v - S^T k))    delta: gated delta rule (arXiv 2412.06464, equation 10;
 *                                           a for each element of k: arXiv 2510.26692)
 *     S = S + k (x) (beta * v)              else: lightning attention (arXiv 2401.04658), Mamba-2's
 *                                           state space duality (arXiv 2405.21060, section 3)
 *     y = scale * S^T q + skip * v */
#include "kernels/ref/ref.h"

static void one_column(const struct delta_job *j, uint32_t t, uint32_t c) {
    const float *q = j->q + t * j->k_stride, *k = j->k + t * j->k_stride;
    const float *decay = j->decay + t * j->decay_stride;
    double v = j->v[t * j->v_stride + c], read = 0, y = 0;
    double beta = j->beta ? j->beta[t * j->beta_stride] : 1;
    for (uint32_t i = 0; i < j->k_dim; i++)
        read += (double)k[i] * decay[j->decay_each ? i : 0] * j->state[(size_t)i * j->v_dim + c];
    double change = beta * (j->delta ? v - read : v);
    for (uint32_t i = 0; i < j->k_dim; i++) {
        float *s = &j->state[(size_t)i * j->v_dim + c];
        *s = (float)((double)decay[j->decay_each ? i : 0] * *s + k[i] * change);
        y += (double)q[i] * *s;
    }
    j->y[t * j->v_stride + c] = (float)(j->scale * y + (j->skip ? *j->skip * v : 0));
}

void delta_ref(const struct delta_job *j) {
    for (uint32_t t = 0; t < j->tokens; t++)
        for (uint32_t c = 0; c < j->v_dim; c++) one_column(j, t, c);
}
