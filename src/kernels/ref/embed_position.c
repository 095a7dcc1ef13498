/* SPDX-License-Identifier: Apache-2.0
 * embed_position.c: a row of a learned table of positions. For every table. */
#include "kernels/ref/ref.h"

void embed_position(const struct quant *quant, const void *table, size_t row_bytes, uint32_t cols,
                    uint32_t row, float *y) {
    embed_ref(quant, (const char *)table + row * row_bytes, cols, 1, y);
}
