/* SPDX-License-Identifier: Apache-2.0
 *
 * halves.cuh: rows of activations as mma.cu multiplies them: float16, each row scaled by a power of
 * two so that its largest is in [128, 256), in segments of 256 that lie so that a warp reads 512
 * bytes:
 *     [tokens / 8][segments][8 pairs of quads][g: token][t][8 halves]
 * A row comes from the kernel that computes it, or from `halve`; both use this, so bits are equal. */
#ifndef DEVICES_CUDA_KERNELS_HALVES_CUH
#define DEVICES_CUDA_KERNELS_HALVES_CUH

#include <cuda_fp16.h>

#include "devices/cuda/kernels/common.cuh"

enum { SEGMENT = 256, PAIRS = 8, GROUP = 8 /* tokens */ };
enum { PAIR_HALVES = WARP * 8, SEGMENT_HALVES = PAIRS * PAIR_HALVES };

__device__ inline float power_of_two(int power) { return __int_as_float((power + 127) << 23); }

/* Of what a thread has of a row. */
struct row_peak { float top; bool finite; };

__device__ inline void add_peak(struct row_peak *p, float4 v) {
    float here = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    p->top = fmaxf(p->top, here);
    p->finite = p->finite && isfinite(v.x) && isfinite(v.y) && isfinite(v.z) && isfinite(v.w);
}

/* A row that is being halved. */
struct halving {
    __half *out;
    float by;
    bool good;
};

/* By a block, whose threads have added all of the row to their peaks. */
__device__ inline struct halving begin_halves(const struct cuda_halve &a, uint32_t token,
                                              struct row_peak peak, float room[WARPS_MAX]) {
    uint32_t segments = (a.cols + SEGMENT - 1) / SEGMENT;
    float top = block_max(peak.finite ? peak.top : INFINITY, room);
    bool good = top < INFINITY;
    int power = top > 0 && good ? 7 - ((int)(__float_as_uint(top) >> 23) - 127) : 0;
    power = power > 100 ? 100 : power < -100 ? -100 : power;
    if (threadIdx.x == 0) a.scale[token] = good ? power_of_two(-power) : NAN;
    __half *out = (__half *)a.y + (size_t)(token / GROUP) * segments * SEGMENT_HALVES +
                  token % GROUP * 32;
    return {out, power_of_two(power), good};
}

/* Elements 4 i .. 4 i + 3, of which those behind a.cols are 0. */
__device__ inline void put_halves(const struct halving &h, uint32_t i, float4 v) {
    uint32_t k = i % (SEGMENT / 4) * 4, t = k / 64, pair = k % 64 / 8;
    if (!h.good) v = make_float4(0, 0, 0, 0);
    __half2 quad[2] = {__floats2half2_rn(v.x * h.by, v.z * h.by),
                       __floats2half2_rn(v.y * h.by, v.w * h.by)};
    *(uint2 *)(h.out + (size_t)(i / (SEGMENT / 4)) * SEGMENT_HALVES + pair * PAIR_HALVES + t * 8 +
               k % 8) = *(uint2 *)quad;
}

__device__ inline void pad_halves(const struct halving &h, uint32_t cols) {
    uint32_t all = (cols + SEGMENT - 1) / SEGMENT * (SEGMENT / 4);
    for (uint32_t i = cols / 4 + threadIdx.x; i < all; i += blockDim.x)
        put_halves(h, i, make_float4(0, 0, 0, 0));
}

/* A thread has added x[i], x[i + blockDim.x], ... ; what it wrote of x itself it may read here. */
__device__ inline void halve_row(const struct cuda_halve &a, const float4 *x, uint32_t token,
                                 struct row_peak peak, float room[WARPS_MAX]) {
    struct halving h = begin_halves(a, token, peak, room);
    for (uint32_t i = threadIdx.x; i < a.cols / 4; i += blockDim.x) put_halves(h, i, x[i]);
    pad_halves(h, a.cols);
}

#endif
