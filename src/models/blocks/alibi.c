/* SPDX-License-Identifier: Apache-2.0
 * alibi.c: see alibi.h. */
#include "models/blocks/alibi.h"

#include <math.h>

float *alibi_slopes(struct arena *arena, uint32_t heads, float max_bias) {
    float *slope = arena_array(arena, heads, sizeof *slope);
    uint32_t n = 1;
    while (n <= heads / 2) n *= 2;
    for (uint32_t h = 0; slope && h < heads; h++) {
        double i = h < n ? h + 1.0 : h - n + 0.5;
        slope[h] = (float)exp2(-max_bias * i / n);
    }
    return slope;
}
