/* SPDX-License-Identifier: Apache-2.0
 * pool.c: y = sum over i of x[i] / rows, or x[0], or x[rows - 1]. For every table: once a sequence,
 * so that speed does not matter, and the sum is in double. */
#include <string.h>

#include "kernels/ref/ref.h"

void pool_ref(enum pool_kind kind, const float *x, uint32_t rows, uint32_t cols, float *y) {
    if (kind != POOL_MEAN) {
        const float *row = kind == POOL_FIRST ? x : x + (size_t)(rows - 1) * cols;
        memcpy(y, row, cols * sizeof *y);
        return;
    }
    for (uint32_t c = 0; c < cols; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < rows; i++) sum += (double)x[(size_t)i * cols + c];
        y[c] = (float)(sum / rows);
    }
}
