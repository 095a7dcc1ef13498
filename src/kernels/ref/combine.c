/* SPDX-License-Identifier: Apache-2.0
 * combine.c: y = sum of weight_i * x_row(i), the output of a mixture of experts (arXiv 1701.06538,
 * equation 1). */
#include "kernels/ref/ref.h"

void combine_ref(const float *x, const uint32_t *row, const float *weight, uint32_t used,
                 uint32_t cols, float *y) {
    for (uint32_t c = 0; c < cols; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < used; i++)
            sum += (double)weight[i] * (double)x[(size_t)row[i] * cols + c];
        y[c] = (float)sum;
    }
}
