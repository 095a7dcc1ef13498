/* SPDX-License-Identifier: Apache-2.0
 *
 * passes.h: loops over the logits of a vocabulary, compiled for each instruction set. All give the
 * same bits: the lanes are written out and added in one order, and nothing is contracted. */
#ifndef SAMPLE_PASSES_H
#define SAMPLE_PASSES_H

#include <stddef.h>

enum { SAMPLE_BLOCK = 64 };

struct sample_entropy {
    double sum;    /* of w = exp(x - max) */
    double moment; /* of w (x - max) */
    size_t n;      /* of those above -inf */
};

struct sample_moments {
    double mean, deviation; /* of those above -inf, the deviation of the population */
};

struct sample_passes {
    /* The greatest of x; NaN if there is a NaN or +inf, or all are -inf. block[i] becomes the
     * greatest of the i-th SAMPLE_BLOCK numbers. */
    float (*max)(const float *x, size_t n, float *block);
    /* out[i] = exp(x[i] - max) for x <= max, relative error below 3e-7, 0 below exp(-87). out may
     * be x, or NULL. Returns the sum. */
    double (*exp_sum)(const float *x, size_t n, float max, float *out);
    struct sample_entropy (*entropy)(const float *x, size_t n, float max);
    struct sample_moments (*moments)(const float *x, size_t n);
};

/* The best of this machine. */
const struct sample_passes *sample_passes(void);

extern const struct sample_passes sample_passes_scalar;
#if defined __x86_64__
extern const struct sample_passes sample_passes_avx2, sample_passes_avx512;
#endif

#endif
