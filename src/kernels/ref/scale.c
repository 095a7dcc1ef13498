/* SPDX-License-Identifier: Apache-2.0
 * scale.c: y = x * s. */
#include "kernels/ref/ref.h"

void scale_ref(const float *x, float s, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] * s;
}
