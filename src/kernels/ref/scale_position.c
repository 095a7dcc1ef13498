/* SPDX-License-Identifier: Apache-2.0
 * scale_position.c: y = x * f, f = 1 + beta * log(1 + floor((pos + offset) / period)): Llama 4's
 * temperature of attention (after arXiv 2501.19399), the same with max(quotient, 1) for 1 + floor,
 * or f = (1 + (pos + offset) / period)^exponent. The quotient is a float, as the models were
 * trained. */
#include <math.h>

#include "kernels/ref/ref.h"

float position_factor_ref(uint32_t pos, float beta, uint32_t offset, float period) {
    double steps = floorf(((float)pos + (float)offset) / period);
    return (float)(1 + (double)beta * log1p(steps));
}

float position_log_ref(uint32_t pos, float beta, uint32_t offset, float period) {
    float steps = ((float)pos + (float)offset) / period;
    return (float)(1 + (double)beta * log(steps > 1 ? (double)steps : 1));
}

float position_power_ref(uint32_t pos, float exponent, uint32_t offset, float period) {
    float steps = ((float)pos + (float)offset) / period;
    return (float)pow(1 + (double)steps, (double)exponent);
}
