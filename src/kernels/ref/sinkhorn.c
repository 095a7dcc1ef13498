/* SPDX-License-Identifier: Apache-2.0
 *
 * sinkhorn.c: a square matrix made nearly doubly stochastic: the softmax of its rows, + eps, then
 * columns and rows in turn divided by their sums + eps, columns last (Sinkhorn and Knopp 1967;
 * arXiv 1306.0895). */
#include <math.h>

#include "kernels/ref/ref.h"

/* Line i is a row of y, or a column. */
static void divide(float *y, uint32_t n, bool rows, double eps) {
    for (uint32_t i = 0; i < n; i++) {
        double sum = eps;
        for (uint32_t k = 0; k < n; k++) sum += (double)y[rows ? i * n + k : k * n + i];
        for (uint32_t k = 0; k < n; k++) {
            float *at = &y[rows ? i * n + k : k * n + i];
            *at = (float)((double)*at / sum);
        }
    }
}

void sinkhorn_ref(const float *x, uint32_t n, uint32_t rounds, float eps, float *y) {
    for (uint32_t r = 0; r < n; r++) {
        float top = -INFINITY;
        for (uint32_t i = 0; i < n; i++) top = fmaxf(top, x[r * n + i]);
        for (uint32_t i = 0; i < n; i++) y[r * n + i] = (float)exp((double)x[r * n + i] - top);
    }
    divide(y, n, true, 0);
    for (uint32_t i = 0; i < n * n; i++) y[i] += eps;
    for (uint32_t i = 0; i < rounds; i++) {
        if (i > 0) divide(y, n, true, (double)eps);
        divide(y, n, false, (double)eps);
    }
}
