/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.c: rotates pairs (a, b) of each head by the table's angles (RoFormer, arXiv 2104.09864):
 *     a' = a cos - b sin,  b' = b cos + a sin
 * Pairs are (2i, 2i + 1) when interleaved, else (i, i + half); what lies past 2 * half is copied.
 * May run in place. */
#include "kernels/ref/ref.h"

void rope_ref(const float *x, const float *table, float *y, uint32_t heads, uint32_t head_dim,
              uint32_t half, bool interleaved) {
    for (uint32_t h = 0; h < heads; h++, x += head_dim, y += head_dim) {
        for (uint32_t i = 0; i < half; i++) {
            uint32_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
            double a = x[first], b = x[second], c = table[i], s = table[half + i];
            y[first] = (float)(a * c - b * s);
            y[second] = (float)(b * c + a * s);
        }
        for (uint32_t i = 2 * half; i < head_dim; i++) y[i] = x[i];
    }
}
