/* SPDX-License-Identifier: Apache-2.0
 * rope.cuh: a head's pairs turned; formula in kernels/ref/rope.c. */
#ifndef DEVICES_CUDA_KERNELS_ROPE_CUH
#define DEVICES_CUDA_KERNELS_ROPE_CUH

#include "devices/cuda/kernels/common.cuh"

/* Pairs of a head, then what is copied. */
__device__ inline uint32_t rope_pairs(const struct cuda_rope &a) {
    return a.half + (a.head_dim - 2 * a.half);
}

/* Pair p, or an element behind them; y may be x. */
__device__ inline void turn_pair(const struct cuda_rope &a, const float *x, const float *table,
                                 uint32_t p, float *y) {
    if (p >= a.half) {
        y[p + a.half] = x[p + a.half];
        return;
    }
    uint32_t first = a.interleaved ? 2 * p : p, second = a.interleaved ? 2 * p + 1 : p + a.half;
    float u = x[first], v = x[second], c = table[p], s = table[a.half + p];
    y[first] = u * c - v * s;
    y[second] = v * c + u * s;
}

#endif
