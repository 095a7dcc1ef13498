/* SPDX-License-Identifier: Apache-2.0
 *
 * glu.c: y = act(gate) * up (Shazeer, arXiv 2002.05202), with
 *     silu       x / (1 + exp(-x))
 *     gelu_tanh  x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))   (arXiv 1606.08415)
 *     gelu_erf   x / 2 * (1 + erf(x / sqrt(2)))
 *     relu       max(x, 0) */
#include <math.h>

#include "kernels/ref/ref.h"

void glu_silu_ref(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double x = gate[i];
        y[i] = (float)(x / (1 + exp(-x)) * up[i]);
    }
}

void glu_gelu_tanh_ref(const float *gate, const float *up, float *y, size_t n) {
    const double sqrt_2_over_pi = 0.79788456080286535588;
    for (size_t i = 0; i < n; i++) {
        double x = gate[i];
        double t = tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x));
        y[i] = (float)(x / 2 * (1 + t) * up[i]);
    }
}

void glu_gelu_erf_ref(const float *gate, const float *up, float *y, size_t n) {
    const double sqrt_half = 0.70710678118654752440;
    for (size_t i = 0; i < n; i++) {
        double x = gate[i];
        y[i] = (float)(x / 2 * (1 + erf(x * sqrt_half)) * up[i]);
    }
}

void glu_relu_ref(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = (gate[i] <= 0 ? 0 : gate[i]) * up[i];
}
