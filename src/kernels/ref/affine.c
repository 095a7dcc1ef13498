/* SPDX-License-Identifier: Apache-2.0
 * affine.c: y = x * w + b, w and b optional. */
#include "kernels/ref/ref.h"

void affine_ref(const float *x, const float *w, const float *b, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double v = x[i];
        if (w) v *= w[i];
        if (b) v += b[i];
        y[i] = (float)v;
    }
}
