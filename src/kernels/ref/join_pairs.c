/* SPDX-License-Identifier: Apache-2.0
 * join_pairs.c: a token's expert rows side by side. For every table. */
#include <string.h>

#include "kernels/ref/ref.h"

void join_pairs_ref(const float *x, const uint32_t *row, uint32_t used, uint32_t cols, float *y) {
    for (uint32_t i = 0; i < used; i++)
        memcpy(y + (size_t)i * cols, x + (size_t)row[i] * cols, cols * sizeof *y);
}
