/* SPDX-License-Identifier: Apache-2.0
 * slice.c: columns [start, start + len) of each group. For every table. */
#include <string.h>

#include "kernels/ref/ref.h"

void slice_ref(const float *x, size_t groups, uint32_t total, uint32_t start, uint32_t len,
               float *y) {
    for (size_t g = 0; g < groups; g++) memcpy(y + g * len, x + g * total + start, len * sizeof *y);
}
