/* SPDX-License-Identifier: Apache-2.0
 *
 * rope_table.c: cos and sin for the rope table, in double and without vectors: a table is made once
 * a token, and the same code on every ISA needs no proof of equal bits. The angle is reduced by
 * pi / 2 in two parts (Cody and Waite 1980), exact while it is below 2^20, then the Taylor series:
 * the results are those of a correctly rounded cos and sin but for one case in thousands. */
#include <math.h>

#include "kernels/scalar/scalar.h"

/* |r| <= pi / 4: the first omitted terms are below 1e-14. */
static double sin_near(double r) {
    double z = r * r, p = -1 / 1307674368000.0;
    p = p * z + 1 / 6227020800.0;
    p = p * z - 1 / 39916800.0;
    p = p * z + 1 / 362880.0;
    p = p * z - 1 / 5040.0;
    p = p * z + 1 / 120.0;
    p = p * z - 1 / 6.0;
    return r + r * z * p;
}

static double cos_near(double r) {
    double z = r * r, p = -1 / 87178291200.0;
    p = p * z + 1 / 479001600.0;
    p = p * z - 1 / 3628800.0;
    p = p * z + 1 / 40320.0;
    p = p * z - 1 / 720.0;
    p = p * z + 1 / 24.0;
    p = p * z - 0.5;
    return 1 + z * p;
}

static void cos_sin(float angle, double *c, double *s) {
    if (!(angle > -0x1p32f && angle < 0x1p32f)) { /* no model asks for it; it must show */
        *c = *s = NAN;
        return;
    }
    double x = (double)angle;
    double n = x * 0.63661977236758134308 + 0x1.8p+52 - 0x1.8p+52;
    double r = x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34;
    double near_c = cos_near(r), near_s = sin_near(r);
    switch ((long long)n & 3) {
    case 0: *c = near_c, *s = near_s; break;
    case 1: *c = -near_s, *s = near_c; break;
    case 2: *c = -near_c, *s = -near_s; break;
    default: *c = near_s, *s = -near_c;
    }
}

void rope_table_scalar(uint32_t pos, const float *freq, uint32_t half, float magnitude,
                       float *out) {
    for (uint32_t i = 0; i < half; i++) {
        double c, s;
        cos_sin((float)pos * freq[i], &c, &s);
        out[i] = (float)(c * (double)magnitude);
        out[half + i] = (float)(s * (double)magnitude);
    }
}
