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

/* By a block, whose thread i has added x[i], x[i + blockDim.x], ... to its peak; what it wrote of x
 * itself it may read here. */
__device__ inline void halve_row(const struct cuda_halve &a, const float4 *x, uint32_t token,
                                 struct row_peak peak, float room[WARPS_MAX]) {
    uint32_t segments = (a.cols + SEGMENT - 1) / SEGMENT;
    float top = block_max(peak.finite ? peak.top : INFINITY, room);
    bool good = top < INFINITY;
    int power = top > 0 && good ? 7 - ((int)(__float_as_uint(top) >> 23) - 127) : 0;
    power = power > 100 ? 100 : power < -100 ? -100 : power;
    float by = power_of_two(power);
    if (threadIdx.x == 0) a.scale[token] = good ? power_of_two(-power) : NAN;
    __half *out = (__half *)a.y + (size_t)(token / GROUP) * segments * SEGMENT_HALVES;
    for (uint32_t i = threadIdx.x; i < segments * (SEGMENT / 4); i += blockDim.x) {
        uint32_t k = i % (SEGMENT / 4) * 4, t = k / 64, pair = k % 64 / 8;
        float4 v = i < a.cols / 4 && good ? x[i] : make_float4(0, 0, 0, 0);
        __half2 quad[2] = {__floats2half2_rn(v.x * by, v.z * by),
                           __floats2half2_rn(v.y * by, v.w * by)};
        *(uint2 *)(out + (size_t)(i / (SEGMENT / 4)) * SEGMENT_HALVES + pair * PAIR_HALVES +
                   (token % GROUP * 4 + t) * 8 + k % 8) = *(uint2 *)quad;
    }
}

#endif
