/* SPDX-License-Identifier: Apache-2.0
 *
 * xielu.c: above 0 y = above * x^2 + beta * x, else y = below * (e^min(x, eps) - 1 - x) + beta * x
 * (xIELU, arXiv 2411.13010). A NaN stays. */
#include <math.h>

#include "kernels/ref/ref.h"

void xielu_ref(const float *x, const struct xielu *args, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double v = x[i], cut = v > args->eps ? args->eps : v;
        double part = v > 0 ? args->above * v * v : args->below * (expm1(cut) - v);
        y[i] = (float)(part + args->beta * v);
    }
}
