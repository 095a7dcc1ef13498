/* SPDX-License-Identifier: Apache-2.0
 *
 * act.c: rows of activations in 8 bits; numerics and layout in kernels.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/body/act.h"
#include "kernels/body/linear.h"

size_t act_row_bytes(uint32_t cols) { return act_sum16_at(cols) + act_pad(cols / 16 * sizeof(int32_t)); }

struct act act_row(const void *rows, uint32_t cols, size_t index) {
    const char *row = (const char *)rows + index * act_row_bytes(cols);
    return (struct act){(const int8_t *)row, (const float *)(row + act_d_at(cols)),
                        (const int32_t *)(row + act_sum16_at(cols))};
}

void act_quantize_scalar(const float *x, uint32_t cols, void *act_row) {
    assert(cols % ACT_BLOCK == 0);
    int8_t *q = act_row;
    float *d = (float *)((char *)act_row + act_d_at(cols));
    int32_t *sum16 = (int32_t *)((char *)act_row + act_sum16_at(cols));
    for (uint32_t k = 0; k < cols; k += ACT_BLOCK) {
        uint32_t amax = 0;
        for (uint32_t i = k; i < k + ACT_BLOCK; i++) {
            uint32_t u;
            memcpy(&u, x + i, sizeof u);
            u &= 0x7fffffff;
            if (u > amax) amax = u;
        }
        float inverse = act_scale(amax, d + k / ACT_BLOCK);
        for (uint32_t i = k; i < k + ACT_BLOCK; i += 16) {
            int32_t sum = 0;
            for (uint32_t j = i; j < i + 16; j++) {
                q[j] = inverse == 0 ? 0 : (int8_t)rintf(x[j] * inverse);
                sum += q[j];
            }
            sum16[i / 16] = sum;
        }
    }
}
