/* SPDX-License-Identifier: Apache-2.0
 * mul.c: y[i] = a[i] * b[i / run]. */
#include "kernels/ref/ref.h"

void mul_ref(const float *a, const float *b, float *y, size_t n, size_t run) {
    for (size_t i = 0; i < n; i++) y[i] = a[i] * b[i / run];
}
