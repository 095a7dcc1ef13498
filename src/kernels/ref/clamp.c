/* SPDX-License-Identifier: Apache-2.0
 * clamp.c: y = min(max(x, low), high); a NaN stays. */
#include "kernels/ref/ref.h"

void clamp_ref(const float *x, float low, float high, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}
