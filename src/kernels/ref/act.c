/* SPDX-License-Identifier: Apache-2.0
 *
 * act.c: y = act(x), with
 *     silu        x / (1 + exp(-x))
 *     gelu_tanh   x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))   (arXiv 1606.08415)
 *     gelu_erf    x / 2 * (1 + erf(x / sqrt(2)))
 *     gelu_quick  x / (1 + exp(-1.702 x))
 *     relu        max(x, 0)
 *     relu2       max(x, 0)^2                                             (arXiv 2109.08668)
 *     sigmoid     1 / (1 + exp(-x))
 *     tanh        tanh(x)
 *     softplus    log(1 + exp(x)), above 20 x itself
 *     exp         exp(x)
 *     root        sqrt(max(|x|, 1e-6)), of x's sign; 0 of 0
 *     identity    x */
#include <math.h>

#include "kernels/ref/ref.h"

static double relu(double x) { return x <= 0 ? 0 : x; }
static double root(double x) {
    double size = sqrt(fabs(x) < 1e-6f ? (double)1e-6f : fabs(x));
    return x > 0 ? size : x < 0 ? -size : x;
}

double act_value(enum act_kind act, double x) {
    const double sqrt_2_over_pi = 0.79788456080286535588, sqrt_half = 0.70710678118654752440;
    switch (act) {
    case ACT_SILU: return x / (1 + exp(-x));
    case ACT_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
    case ACT_GELU_ERF: return x / 2 * (1 + erf(x * sqrt_half));
    case ACT_GELU_QUICK: return x / (1 + exp(-1.702 * x));
    case ACT_RELU: return relu(x);
    case ACT_RELU2: return relu(x) * relu(x);
    case ACT_SIGMOID: return 1 / (1 + exp(-x));
    case ACT_TANH: return tanh(x);
    case ACT_SOFTPLUS: return x > 20 ? x : log1p(exp(x));
    case ACT_EXP: return exp(x);
    case ACT_ROOT: return root(x);
    default: return x;
    }
}

#define ACT(name, kind)                                                                 \
    void act_##name##_ref(const float *x, float *y, size_t n) {                         \
        for (size_t i = 0; i < n; i++) y[i] = (float)act_value(kind, (double)x[i]);     \
    }
REF_ACTS(ACT)
