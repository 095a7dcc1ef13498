/* SPDX-License-Identifier: Apache-2.0
 * concat.c: for each group the next columns of a, then of b. For every table. */
#include <string.h>

#include "kernels/ref/ref.h"

void concat_ref(const struct concat *c, float *y) {
    const float *a = c->a, *b = c->b;
    for (uint32_t g = 0; g < c->groups; g++) {
        memcpy(y, a, c->a_cols * sizeof *y);
        memcpy(y + c->a_cols, b, c->b_cols * sizeof *y);
        y += c->a_cols + c->b_cols;
        if (!c->a_once) a += c->a_cols;
        if (!c->b_once) b += c->b_cols;
    }
}
