/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.cuh: rows of a cache. A position is a row of its format (blocks as in GGUF, a scale before
 * its codes), whatever the CPU's layout; formats and the Walsh-Hadamard turn of quantized keys:
 * kernels/kernels.h. */
#ifndef DEVICES_CUDA_KERNELS_CACHE_CUH
#define DEVICES_CUDA_KERNELS_CACHE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "devices/cuda/kernels/common.cuh"

enum { PAGE = 64, SPLIT = 128, BLOCK = 32 };
enum {
#define KV_TYPE(name) KV_##name,
#include "quant/kv_types.def"
#undef KV_TYPE
};

__device__ inline bool is_quantized(uint32_t type) { return type == KV_q8_0 || type == KV_q4_0; }
__device__ inline uint32_t block_bytes(uint32_t type) { return type == KV_q8_0 ? 34 : 18; }

__device__ inline float get(const uint8_t *row, uint32_t type, uint32_t d) {
    if (type == KV_f32) return ((const float *)row)[d];
    if (type == KV_f16) return __half2float(((const __half *)row)[d]);
    if (type == KV_bf16) return __bfloat162float(((const __nv_bfloat16 *)row)[d]);
    const uint8_t *block = row + d / BLOCK * block_bytes(type), *code = block + 2;
    float scale = __half2float(*(const __half *)block);
    uint32_t i = d % BLOCK;
    if (type == KV_q8_0) return (float)(int8_t)code[i] * scale;
    return (float)((int)(i < 16 ? code[i] & 15 : code[i - 16] >> 4) - 8) * scale;
}

/* t = H t */
__device__ inline void turn(float t[BLOCK]) {
#pragma unroll
    for (int stride = 1; stride < BLOCK; stride *= 2)
#pragma unroll
        for (int i = 0; i < BLOCK; i++)
            if ((i & stride) == 0) {
                float a = t[i], b = t[i + stride];
                t[i] = a + b;
                t[i + stride] = a - b;
            }
}

__device__ inline void put_block(uint8_t *block, uint32_t type, const float *from, bool turned) {
    float x[BLOCK], up = -INFINITY, down = -INFINITY;
    bool finite = true;
    for (int i = 0; i < BLOCK; i++) x[i] = from[i];
    if (turned) turn(x);
    for (int i = 0; i < BLOCK; i++) {
        if (turned) x[i] *= 1.0f / BLOCK;
        up = x[i] > up ? x[i] : up;
        down = -x[i] > down ? -x[i] : down;
        finite = finite && isfinite(x[i]);
    }
    float most = up > down ? up : -down;
    float scale = type == KV_q8_0 ? fabsf(most) / 127 : most / -8;
    bool whole = finite && fabsf(scale) < 65520;
    __half half = whole ? __float2half_rn(scale) : __ushort_as_half(0x7e00);
    float rounded = __half2float(half);
    if (rounded == 0) half = __ushort_as_half(0);
    float inverse = whole && rounded != 0 ? 1 / rounded : 0;
    *(__half *)block = half;
    float low = type == KV_q8_0 ? -127 : -8, high = type == KV_q8_0 ? 127 : 7;
    for (int i = 0; i < BLOCK; i++) {
        float v = inverse == 0 ? 0 : x[i] * inverse;
        int code = (int)rintf(v < low ? low : v > high ? high : v);
        if (type == KV_q8_0) block[2 + i] = (uint8_t)code;
        else if (i < 16) block[2 + i] = (uint8_t)(code + 8);
        else block[2 + i - 16] |= (uint8_t)((code + 8) << 4);
    }
}

__device__ inline void put_row(uint8_t *row, uint32_t type, const float *x, uint32_t dim, bool keys) {
    if (is_quantized(type)) {
        for (uint32_t b = threadIdx.x; b < dim / BLOCK; b += blockDim.x)
            put_block(row + b * block_bytes(type), type, x + b * BLOCK, keys);
        return;
    }
    for (uint32_t d = threadIdx.x; d < dim; d += blockDim.x) {
        if (type == KV_f32) ((float *)row)[d] = x[d];
        else if (type == KV_f16) ((__half *)row)[d] = __float2half_rn(x[d]);
        else ((__nv_bfloat16 *)row)[d] = __float2bfloat16_rn(x[d]);
    }
}

/* The block of a page; NULL: given back. */
__device__ inline uint8_t *block_of(const struct cuda_cache &c, const struct cuda_step *step, uint32_t seq,
                             uint32_t page, uint32_t kv_head) {
    uint32_t number = pages_of(step, c.group, seq)[page];
    if (number == NO_PAGE) return NULL;
    return c.layer + number * c.page_bytes + kv_head * c.block_bytes;
}

/* Shared memory: queries of quantized keys are turned, too. */
__device__ inline void turn_queries(float *q, uint32_t n) {
    for (uint32_t b = threadIdx.x; b < n / BLOCK; b += blockDim.x) {
        float x[BLOCK];
        for (int i = 0; i < BLOCK; i++) x[i] = q[b * BLOCK + i];
        turn(x);
        for (int i = 0; i < BLOCK; i++) q[b * BLOCK + i] = x[i];
    }
    __syncthreads();
}

/* q . k, of a warp: lane l has the features l, l + 32, ... */
__device__ inline float dot_key(const float *q, const uint8_t *k, uint32_t type, uint32_t dim) {
    float sum = 0;
    for (uint32_t d = threadIdx.x % WARP; d < dim; d += WARP) sum = fmaf(q[d], get(k, type, d), sum);
    return warp_sum(sum);
}

#endif
