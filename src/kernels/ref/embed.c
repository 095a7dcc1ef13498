/* SPDX-License-Identifier: Apache-2.0
 * embed.c: y = scale * row of the embedding matrix. For every table. */
#include "kernels/ref/ref.h"

void embed_ref(const struct quant *quant, const void *row, uint32_t cols, float scale, float *y) {
    quant->decode(row, y, cols / quant->block);
    if (scale != 1)
        for (uint32_t i = 0; i < cols; i++) y[i] *= scale;
}
