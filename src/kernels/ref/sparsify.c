/* SPDX-License-Identifier: Apache-2.0
 * sparsify.c: y = max(x - (mean + by * deviation), 0): a share of a row of normal distribution
 * stays (Gemma 3n's statistical top-k, arXiv 2506.06644). */
#include <math.h>

#include "kernels/ref/ref.h"

void sparsify_ref(const float *x, float by, float *y, uint32_t n) {
    double sum = 0, variance = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    double mean = sum / n;
    for (uint32_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
    double cut = mean + sqrt(variance / n) * by;
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] - cut > 0 ? (float)(x[i] - cut) : 0;
}
