/* SPDX-License-Identifier: Apache-2.0
 * match_rms.c: y = a * sqrt(mean(b^2)) / sqrt(max(mean(a^2), floor)): a as large as b. */
#include <math.h>

#include "kernels/ref/ref.h"

static double mean_square(const float *x, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum / n;
}

void match_rms_ref(const float *a, const float *b, float floor, float *y, uint32_t n) {
    double own = mean_square(a, n);
    double factor = sqrt(mean_square(b, n)) / sqrt(own < (double)floor ? (double)floor : own);
    for (uint32_t i = 0; i < n; i++) y[i] = (float)(a[i] * factor);
}
