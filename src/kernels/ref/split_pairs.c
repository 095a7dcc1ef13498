/* SPDX-License-Identifier: Apache-2.0
 * split_pairs.c: the parts of a token's row as its expert rows. For every table. */
#include <string.h>

#include "kernels/ref/ref.h"

void split_pairs_ref(const float *x, const uint32_t *row, uint32_t used, uint32_t cols, float *y) {
    for (uint32_t i = 0; i < used; i++)
        memcpy(y + (size_t)row[i] * cols, x + (size_t)i * cols, cols * sizeof *y);
}
