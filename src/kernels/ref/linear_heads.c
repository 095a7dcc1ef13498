/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_heads.c: y of head h = W_h (the h-th of equal runs of x's columns). The product is
 * linear's; this brings a head's columns together, for every table. */
#include <string.h>

#include "kernels/kernels.h"

void heads_gather(const float *x, size_t stride, uint32_t rows, uint32_t cols, float *y) {
    for (uint32_t i = 0; i < rows; i++)
        memcpy(y + (size_t)i * cols, x + i * stride, cols * sizeof *y);
}
