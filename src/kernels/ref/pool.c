/* SPDX-License-Identifier: Apache-2.0
 * pool.c: of rows x[1] .. x[n], by column, y =
 *     first      x[1]                        last       x[n]
 *     max        the largest                 mean       sum of x[i] / n
 *     mean sqrt  sum of x[i] / sqrt(n)       weighted   sum of i * x[i] / sum of i
 * For every table: once a sequence, so that speed does not matter, and sums are in double. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

static void take(const float *x, uint32_t row, uint32_t cols, float *y) {
    memcpy(y, x + (size_t)row * cols, cols * sizeof *y);
}

static void largest(const float *x, uint32_t rows, uint32_t cols, float *y) {
    take(x, 0, cols, y);
    for (uint32_t i = 1; i < rows; i++)
        for (uint32_t c = 0; c < cols; c++) {
            float v = x[(size_t)i * cols + c];
            if (!(v <= y[c]) && !isnan(y[c])) y[c] = v; /* a NaN stays */
        }
}

static void sum(const float *x, uint32_t rows, uint32_t cols, bool weighted, double by, float *y) {
    for (uint32_t c = 0; c < cols; c++) {
        double all = 0;
        for (uint32_t i = 0; i < rows; i++)
            all += (weighted ? i + 1.0 : 1.0) * (double)x[(size_t)i * cols + c];
        y[c] = (float)(all / by);
    }
}

void pool_ref(enum pool_kind kind, const float *x, uint32_t rows, uint32_t cols, float *y) {
    double n = rows;
    switch (kind) {
    case POOL_FIRST: take(x, 0, cols, y); break;
    case POOL_LAST: take(x, rows - 1, cols, y); break;
    case POOL_MAX: largest(x, rows, cols, y); break;
    case POOL_MEAN_SQRT: sum(x, rows, cols, false, sqrt(n), y); break;
    case POOL_WEIGHTED: sum(x, rows, cols, true, n * (n + 1) / 2, y); break;
    default: sum(x, rows, cols, false, n, y); break;
    }
}
