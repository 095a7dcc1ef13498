/* SPDX-License-Identifier: Apache-2.0
 *
 * common.cuh: what all kernels share. Sums over threads have one order: lanes of a warp as a
 * butterfly, then warps by number; so a row's bits do not depend on the rest of the step. No
 * contraction (-fmad=false): fused multiply-adds where written. */
#ifndef DEVICES_CUDA_KERNELS_COMMON_CUH
#define DEVICES_CUDA_KERNELS_COMMON_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kinds.h"
#include "devices/cuda/kernels/args.h"

#define KERNEL_FN(name, args) extern "C" __global__ void name(const __grid_constant__ args a)

enum { WARP = 32, WARPS_MAX = 32 };
#define NO_PAGE 0xffffffffu

/* The first thing a kernel does. A kernel may be launched while the one before it still runs
 * (programmatic dependent launch, replay.c): it lets the next one come, and goes on when all before
 * are done and what they wrote can be read. Since every kernel waits so, all before the one before
 * are done, too. What a plan never writes (weights) may be asked for between the two. */
__device__ inline void let_next_come() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void wait_for_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* Brings weights that it will read to L2 meanwhile. */
__device__ inline void ask_vector(const float *w, uint32_t n) {
    enum { LINE = 32 };
    for (uint32_t i = threadIdx.x * LINE; w && i < n; i += blockDim.x * LINE)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(w + i));
}
__device__ inline void take_turn() {
    let_next_come();
    wait_for_last();
}

/* Brings what lies there to L2. */
__device__ inline void ask(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

__device__ inline float warp_sum(float v) {
    for (int away = WARP / 2; away > 0; away /= 2) v += __shfl_xor_sync(~0u, v, away);
    return v;
}
__device__ inline float warp_max(float v) {
    for (int away = WARP / 2; away > 0; away /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, away));
    return v;
}

/* All threads get it; `room` is shared by the block, and may be used again at once. */
__device__ inline float block_sum(float v, float room[WARPS_MAX]) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = v;
    __syncthreads();
    float sum = room[0];
    for (unsigned w = 1; w < blockDim.x / WARP; w++) sum += room[w];
    return sum;
}
__device__ inline float block_max(float v, float room[WARPS_MAX]) {
    v = warp_max(v);
    __syncthreads();
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = v;
    __syncthreads();
    float top = room[0];
    for (unsigned w = 1; w < blockDim.x / WARP; w++) top = fmaxf(top, room[w]);
    return top;
}

__device__ inline const uint32_t *pages_of(const struct cuda_step *s, uint32_t group,
                                           uint32_t seq) {
    return s->page + s->page_at[group * s->seqs + seq];
}

__device__ inline float *state_of(const struct cuda_state &s, const struct cuda_step *step,
                                  uint32_t seq) {
    return (float *)(s.layer + pages_of(step, s.group, seq)[0] * s.page_bytes);
}

/* Formulas: kernels/ref/act.c. */
__device__ inline float act_value(uint32_t act, float x) {
    switch (act) {
    case ACT_SILU: return x / (1 + expf(-x));
    case ACT_GELU_TANH:
        return x / 2 * (1 + tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x)));
    case ACT_GELU_ERF: return x / 2 * (1 + erff(x * 0.70710678118654752440f));
    case ACT_GELU_QUICK: return x / (1 + expf(-1.702f * x));
    case ACT_RELU: return x <= 0 ? 0 : x;
    case ACT_RELU2: return x <= 0 ? 0 : x * x;
    case ACT_SIGMOID: return 1 / (1 + expf(-x));
    case ACT_TANH: return tanhf(x);
    case ACT_SOFTPLUS: return x > 20 ? x : log1pf(expf(x));
    case ACT_EXP: return expf(x);
    case ACT_ROOT: {
        float size = sqrtf(fabsf(x) < 1e-6f ? 1e-6f : fabsf(x));
        return x > 0 ? size : x < 0 ? -size : x;
    }
    default: return x;
    }
}

#endif
