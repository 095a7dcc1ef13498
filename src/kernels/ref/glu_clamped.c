/* SPDX-License-Identifier: Apache-2.0
 *
 * glu_clamped.c: y = (u + up_add) * g * sigmoid(alpha * g), g = min(gate, limit), u = up within
 * -up_limit and up_limit (gpt-oss, arXiv 2508.10925, section 2.1; with alpha 1 and nothing added
 * a clamped SwiGLU). A NaN stays. */
#include <math.h>

#include "kernels/ref/ref.h"

void glu_clamped_ref(const float *gate, const float *up, const struct glu_clamp *c, float *y,
                     size_t n) {
    for (size_t i = 0; i < n; i++) {
        double g = gate[i] > c->limit ? c->limit : gate[i];
        double u = up[i] > c->up_limit ? c->up_limit : up[i] < -c->up_limit ? -c->up_limit : up[i];
        y[i] = (float)((u + (double)c->up_add) * g / (1 + exp(-(double)c->alpha * g)));
    }
}
