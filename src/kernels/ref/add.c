/* SPDX-License-Identifier: Apache-2.0
 * add.c: y = a + b. */
#include "kernels/ref/ref.h"

void add_ref(const float *a, const float *b, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}
