/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.cuh: a run's RMS norm by a block; formula in kernels/ref/. The order of the sum depends on the
 * block's threads. */
#ifndef DEVICES_CUDA_KERNELS_NORM_CUH
#define DEVICES_CUDA_KERNELS_NORM_CUH

#include "devices/cuda/kernels/common.cuh"

__device__ inline float mean_square(const float *x, uint32_t n, float *room) {
    float sum = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum = fmaf(x[i], x[i], sum);
    return block_sum(sum, room) / n;
}

/* `at`: of the run in the rows. */
__device__ inline void write_norm(const struct cuda_rows &a, const float *x, size_t at, float mean,
                                  float scale, float *y) {
    size_t column = at % a.cols;
    for (uint32_t i = threadIdx.x; i < a.width; i += blockDim.x) {
        float v = (x[i] - mean) * scale;
        if (a.w) v *= a.w[(a.w_cols == a.width ? 0 : column) + i];
        if (a.b) v += a.b[(a.b_cols == a.width ? 0 : column) + i];
        y[i] = v;
    }
}
__device__ inline float rms_scale(const struct cuda_rows &a, const float *x, float *room) {
    return 1 / sqrtf(mean_square(x, a.width, room) + a.f);
}

#endif
