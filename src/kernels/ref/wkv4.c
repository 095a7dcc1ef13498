/* SPDX-License-Identifier: Apache-2.0
 *
 * wkv4.c: the WKV operator of RWKV-4 (arXiv 2305.13048, equation 16): a mean of the values so far,
 * the token's own weighted by exp(first + k), one of s tokens before it by
 * exp(k + (s - 1) * decay), decay < 0. Sums are kept as multiples of exp(-top), top being the
 * largest exponent in them (appendix D). */
#include <math.h>

#include "kernels/ref/ref.h"

struct sums { double values, weights, top; };

static struct sums with(struct sums s, double exponent, double v) {
    double top = s.weights > 0 && s.top > exponent ? s.top : exponent;
    double e = s.weights > 0 ? exp(s.top - top) : 0, f = exp(exponent - top);
    return (struct sums){e * s.values + f * v, e * s.weights + f, top};
}

void wkv4_ref(const struct wkv4_job *j, uint32_t col0, uint32_t col1) {
    for (uint32_t c = col0; c < col1; c++) {
        float *values = j->state + c, *weights = values + j->cols, *top = weights + j->cols;
        for (uint32_t t = 0; t < j->tokens; t++) {
            size_t at = (size_t)t * j->cols + c;
            struct sums s = {*values, *weights, *top};
            struct sums now = with(s, (double)j->first[c] + j->k[at], j->v[at]);
            j->y[at] = (float)(now.values / now.weights);
            s.top += j->decay[c];
            s = with(s, j->k[at], j->v[at]);
            *values = (float)s.values;
            *weights = (float)s.weights;
            *top = (float)s.top;
        }
    }
}
