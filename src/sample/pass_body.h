/* SPDX-License-Identifier: Apache-2.0
 * pass_body.h: the passes, 16 lanes at a time in the vector types of gcc and clang; passes_<isa>.c
 * includes it once with PASSES as the name of its table. Sums keep 16 partial sums in double. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sample/passes.h"

enum { LANES = 16 };
typedef float float_lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t int_lanes __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef double double_lanes __attribute__((vector_size(LANES * sizeof(double))));

/* Up to LANES floats of x, -inf where there are none. */
static inline float_lanes read_lanes(const float *x, size_t n) {
    float_lanes v;
    if (n >= LANES) {
        memcpy(&v, x, sizeof v);
        return v;
    }
    float part[LANES];
    for (size_t j = 0; j < LANES; j++) part[j] = j < n ? x[j] : -INFINITY;
    memcpy(&v, part, sizeof v);
    return v;
}

/* mask ? a : b, per lane. */
static inline float_lanes choose(int_lanes mask, float_lanes a, float_lanes b) {
    return (float_lanes)(((int_lanes)a & mask) | ((int_lanes)b & ~mask));
}

static inline float_lanes greater(float_lanes a, float_lanes b) { return choose(a > b, a, b); }

static inline float greatest_of(float_lanes v) {
    float_lanes half = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5,
                                               6, 7);
    v = greater(v, half);
    half = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v = greater(v, half);
    float x = v[0];
    for (size_t j = 1; j < 4; j++)
        if (v[j] > x) x = v[j];
    return x;
}

static inline double total(double_lanes sum) {
    double x = 0;
    for (size_t j = 0; j < LANES; j++) x += sum[j];
    return x;
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

static float pass_max(const float *x, size_t n, float *block) {
    const float_lanes lowest = read_lanes(x, 0);
    float_lanes best = lowest;
    int_lanes bad = {0};
    for (size_t i = 0; i < n; i += SAMPLE_BLOCK) {
        float_lanes here = lowest;
        for (size_t j = i; j < i + SAMPLE_BLOCK && j < n; j += LANES) {
            float_lanes v = read_lanes(x + j, n - j);
            here = greater(v, here);
            bad |= ~(v <= FLT_MAX);
        }
        best = greater(here, best);
        block[i / SAMPLE_BLOCK] = greatest_of(here);
    }
    for (size_t j = 0; j < LANES; j++)
        if (bad[j]) return NAN;
    float max = greatest_of(best);
    return max == -INFINITY ? NAN : max;
}

static double pass_exp_sum(const float *x, size_t n, float max, float *out) {
    double_lanes sum = {0};
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes e = exp_nonpositive(read_lanes(x + i, n - i) - max);
        sum += __builtin_convertvector(e, double_lanes);
        if (out) memcpy(out + i, &e, (n - i < LANES ? n - i : LANES) * sizeof *out);
    }
    return total(sum);
}

/* -inf weighs nothing, and its product with that is no number: it is taken as 0. */
static struct sample_entropy pass_entropy(const float *x, size_t n, float max) {
    double_lanes sum = {0}, moment = {0};
    int_lanes count = {0};
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes v = read_lanes(x + i, n - i) - max, e = exp_nonpositive(v);
        int_lanes there = v > -INFINITY;
        sum += __builtin_convertvector(e, double_lanes);
        moment += __builtin_convertvector(e * choose(there, v, (float_lanes){0}), double_lanes);
        count -= there;
    }
    struct sample_entropy out = {.sum = total(sum), .moment = total(moment)};
    for (size_t j = 0; j < LANES; j++) out.n += (size_t)count[j];
    return out;
}

static struct sample_moments pass_moments(const float *x, size_t n) {
    double_lanes sum = {0}, square = {0};
    int_lanes count = {0};
    double there = 0;
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes v = read_lanes(x + i, n - i);
        int_lanes finite = v > -INFINITY;
        sum += __builtin_convertvector(choose(finite, v, (float_lanes){0}), double_lanes);
        count -= finite;
    }
    for (size_t j = 0; j < LANES; j++) there += count[j];
    struct sample_moments out = {.mean = total(sum) / there};
    float mean = (float)out.mean;
    for (size_t i = 0; i < n; i += LANES) {
        float_lanes v = read_lanes(x + i, n - i);
        float_lanes d = choose(v > -INFINITY, v - mean, (float_lanes){0});
        double_lanes wide = __builtin_convertvector(d, double_lanes);
        square += wide * wide;
    }
    /* Around a mean that was rounded to a float: take off what that adds. */
    double off = out.mean - (double)mean;
    out.deviation = sqrt(fmax(0, total(square) / there - off * off));
    return out;
}

const struct sample_passes PASSES = {pass_max, pass_exp_sum, pass_entropy, pass_moments};
