/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: the logarithm of a softmax' denominator. Rows are as long as the vocabulary, and a text
 * of 100,000 tokens has tens of thousands of them: with libm's expf this costs a quarter of a small
 * model's prompt, so the loops are written for the compiler to vectorize. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"

enum { LANES = 16, BLOCK = 4096 }; /* floats are summed in lanes for a block, blocks in double */

/* e^x for x <= 0, relative error about 2e-7. x = k ln 2 + f, |f| <= ln 2 / 2; Taylor in f. */
static inline float exp_negative(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x > -87.0f ? x : -87.0f;
    float k = (x * 1.44269504f + round) - round;
    float f = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    uint32_t bits = (uint32_t)((int32_t)k + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* The largest value; false if one is not finite. */
static bool largest(const float *x, size_t n, float *out) {
    float lane[LANES];
    float bad[LANES] = {0}; /* x - x: 0 for finite values, NaN for others */
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++) lane[j] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
            bad[j] += x[i + j] - x[i + j];
        }
    for (; i < n; i++) {
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
        bad[0] += x[i] - x[i];
    }
    *out = lane[0];
    bool finite = true;
    for (size_t j = 0; j < LANES; j++) {
        if (lane[j] > *out) *out = lane[j];
        if (bad[j] != 0) finite = false; /* NaN compares unequal */
    }
    return finite;
}

static double sum_block(const float *x, size_t n, float max) {
    float lane[LANES] = {0};
    double sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += exp_negative(x[i + j] - max);
    for (; i < n; i++) lane[0] += exp_negative(x[i] - max);
    for (size_t j = 0; j < LANES; j++) sum += (double)lane[j];
    return sum;
}

bool eval_log_sum(const float *x, size_t n, double *out, uint32_t *top) {
    float max;
    double sum = 0;
    if (!largest(x, n, &max)) return false;
    for (size_t i = 0; i < n; i += BLOCK)
        sum += sum_block(x + i, n - i < BLOCK ? n - i : BLOCK, max);
    *out = (double)max + log(sum);
    *top = 0;
    while (x[*top] != max) ++*top;
    return true;
}
