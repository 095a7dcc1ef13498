/* SPDX-License-Identifier: Apache-2.0
 * round_act.c: codes = round(x * s) with s = 127 / max(|x|), to nearest even; step = 1 / s (BitNet
 * b1.58, arXiv 2402.17764). In FP32, as the model that was trained so: a code is no matter of more
 * precision. */
#include <math.h>

#include "kernels/ref/ref.h"

void round_act_ref(const float *x, float *codes, float *step, uint32_t n) {
    float top = 1e-5f;
    for (uint32_t i = 0; i < n; i++) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    float s = 127 / top;
    for (uint32_t i = 0; i < n; i++) codes[i] = rintf(x[i] * s);
    *step = 1 / s;
}
