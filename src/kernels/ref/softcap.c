/* SPDX-License-Identifier: Apache-2.0
 * softcap.c: y = cap * tanh(x / cap) (Gemma 2, arXiv 2408.00118, section 2). */
#include <math.h>

#include "kernels/ref/ref.h"

void softcap_ref(const float *x, float cap, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = (float)(cap * tanh((double)x[i] / cap));
}
