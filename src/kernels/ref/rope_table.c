/* SPDX-License-Identifier: Apache-2.0
 * rope_table.c: cos and sin of the angle pos * freq, times magnitude. The angle is rounded to float
 * first, as the models were trained (transformers computes it so). */
#include <math.h>

#include "kernels/ref/ref.h"

void rope_table_ref(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out) {
    for (uint32_t i = 0; i < half; i++) {
        float angle = (float)pos * freq[i];
        out[i] = (float)(cos((double)angle) * magnitude);
        out[half + i] = (float)(sin((double)angle) * magnitude);
    }
}
