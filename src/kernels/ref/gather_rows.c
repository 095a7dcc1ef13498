/* SPDX-License-Identifier: Apache-2.0
 * gather_rows.c: y[i] = x[row[i]]. For every table. */
#include <string.h>

#include "kernels/ref/ref.h"

void gather_rows_ref(const float *x, const uint32_t *row, uint32_t rows, uint32_t cols, float *y) {
    for (uint32_t i = 0; i < rows; i++)
        memcpy(y + (size_t)i * cols, x + (size_t)row[i] * cols, cols * sizeof *y);
}
