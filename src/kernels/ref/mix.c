/* SPDX-License-Identifier: Apache-2.0
 * mix.c: group k of y = sum over j of w[j * to + k] * group j of x. */
#include "kernels/ref/ref.h"

void mix_ref(const float *x, const float *w, uint32_t from, uint32_t to, uint32_t width, float *y) {
    for (uint32_t k = 0; k < to; k++)
        for (uint32_t c = 0; c < width; c++) {
            double sum = 0;
            for (uint32_t j = 0; j < from; j++)
                sum += (double)w[j * to + k] * (double)x[(size_t)j * width + c];
            y[(size_t)k * width + c] = (float)sum;
        }
}
