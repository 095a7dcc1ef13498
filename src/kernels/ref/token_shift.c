/* SPDX-License-Identifier: Apache-2.0
 * token_shift.c: y[t] = x[t - 1], the time shift of RWKV (arXiv 2305.13048, section 3.1.1). */
#include "kernels/ref/ref.h"

#include <string.h>

void token_shift_ref(const float *x, float *state, float *y, uint32_t cols, uint32_t tokens) {
    size_t before = (size_t)(tokens - 1) * cols; /* floats of all rows but one */
    memcpy(y, state, cols * sizeof *y);
    memcpy(y + cols, x, before * sizeof *y);
    memcpy(state, x + before, cols * sizeof *y);
}
