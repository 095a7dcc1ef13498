/* SPDX-License-Identifier: Apache-2.0
 *
 * scale_position.c: the factor of a position, in double and without vectors, as the rope table: one
 * a token, the same code on every ISA. The logarithm of 2^n m, m near 1: n ln 2 + 2 atanh(s),
 * s = (m - 1) / (m + 1), the Taylor series. The exponential: 2^n e^r, the Taylor series of e^r. */
#include <math.h>

#include "kernels/scalar/scalar.h"

static const double ln_2 = 0.69314718055994530942;

/* x >= 1; |s| <= 0.172: the first omitted term is below 1e-12. */
static double log_of(double x) {
    int n;
    double m = frexp(x, &n);
    if (m < 0.70710678118654752440) m *= 2, n--;
    double s = (m - 1) / (m + 1), z = s * s, p = 1 / 15.0;
    for (int i = 13; i > 0; i -= 2) p = p * z + 1.0 / i;
    return n * ln_2 + 2 * s * p;
}

float position_factor_scalar(uint32_t pos, float beta, uint32_t offset, float period) {
    float steps = floorf(((float)pos + (float)offset) / period);
    return (float)(1 + (double)beta * log_of(1 + (double)steps));
}

float position_log_scalar(uint32_t pos, float beta, uint32_t offset, float period) {
    float steps = ((float)pos + (float)offset) / period;
    return (float)(1 + (double)beta * log_of(steps > 1 ? (double)steps : 1));
}

/* |r| <= 0.347: the first omitted term is below 1e-14. */
static double exp_of(double x) {
    double n = floor(x / ln_2 + 0.5), r = x - n * ln_2, y = 1;
    for (int i = 12; i > 0; i--) y = y * r / i + 1;
    return ldexp(y, (int)n);
}

float position_power_scalar(uint32_t pos, float exponent, uint32_t offset, float period) {
    float steps = ((float)pos + (float)offset) / period;
    return (float)exp_of((double)exponent * log_of(1 + (double)steps));
}
