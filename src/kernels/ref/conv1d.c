/* SPDX-License-Identifier: Apache-2.0
 *
 * conv1d.c: y[t][c] = bias[c] + sum over j of w[j][c] * x[t - (kernel - 1 - j) * step][c], as in
 * Mamba (arXiv 2312.00752, section 3.4), where step is 1. */
#include "kernels/ref/ref.h"

void conv1d_ref(const struct conv1d_job *j, uint32_t col0, uint32_t col1) {
    uint32_t past = (j->kernel - 1) * j->step;
    for (uint32_t c = col0; c < col1; c++)
        for (uint32_t t = 0; t < j->tokens; t++) {
            const float *x = j->x + (size_t)t * j->cols + c;
            float *state = j->state + c;
            double sum = j->bias ? j->bias[c] : 0;
            for (uint32_t i = 0; i + 1 < j->kernel; i++)
                sum += (double)j->w[(size_t)i * j->cols + c] * state[(size_t)i * j->step * j->cols];
            sum += (double)j->w[(size_t)(j->kernel - 1) * j->cols + c] * *x;
            j->y[(size_t)t * j->cols + c] = (float)sum;
            for (uint32_t i = 0; i < past; i++)
                state[(size_t)i * j->cols] = i + 1 < past ? state[(size_t)(i + 1) * j->cols] : *x;
        }
}
