/* SPDX-License-Identifier: Apache-2.0
 *
 * act.c: rows of activations in 8 bits; numerics and layout in kernels.h. */
#include "kernels/body/act.h"
#include "kernels/body/linear.h"

size_t act_row_bytes(uint32_t cols) {
    return act_sum16_at(cols) + act_pad(cols / 16 * sizeof(int32_t));
}

struct act act_row(const void *rows, uint32_t cols, size_t index) {
    const char *row = (const char *)rows + index * act_row_bytes(cols);
    return (struct act){(const int8_t *)row, (const float *)(row + act_d_at(cols)),
                        (const int32_t *)(row + act_sum16_at(cols))};
}

void act_quantize_scalar(const float *x, uint32_t cols, void *row) { act_make(x, cols, row); }
