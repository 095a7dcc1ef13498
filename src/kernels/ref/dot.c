/* SPDX-License-Identifier: Apache-2.0
 * dot.c: the sum of a[i] * b[i]. */
#include "kernels/ref/ref.h"

float dot_ref(const float *a, const float *b, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return (float)sum;
}
