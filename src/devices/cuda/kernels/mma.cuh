/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.cuh: products on tensor cores with weights of the commonest integer formats: the numerics, and
 * what a thread has of the weights.
 *
 * Numerics, the same for one token and for thousands: weights and activations are float16, products
 * are summed in float32. A row of x is scaled by a power of two so that its largest is in [128, 256),
 * a weight matrix likewise; scaling is exact, and undone at the end. A weight is
 *     fma(code - offset, half(scale), -half(min))           one rounding of scale, min and the sum
 * K is cut into segments of 256: each is a chain of 16 m16n8k16 from zero, in one order, and the
 * segments are added in order of their number. Weights are the M operand, tokens are N. So a
 * product's bits depend on its row of w and its row of x alone.
 *
 * A thread (g, t) = (lane / 4, lane % 4) has of rows g and g + 8 the weights 64 t .. 64 t + 63 of a
 * segment, as 16 quads of 4; quad j goes into the j-th mma. Within a quad elements are in the order
 * 0, 2, 1, 3, as they come out of packed words; activations lie as halves.cuh says. */
#ifndef DEVICES_CUDA_KERNELS_MMA_CUH
#define DEVICES_CUDA_KERNELS_MMA_CUH

#include <cuda_fp16.h>

#include "devices/cuda/kernels/common.cuh"
#include "devices/cuda/kernels/formats.cuh"
#include "devices/cuda/kernels/halves.cuh"

enum { QUADS = 16, TILE = 16 /* rows */ };
enum { AHEAD = 2 /* segments of a warp that are asked for early */ };

/* ---- weights of a thread: 64 of a row and segment ---- */

struct two { uint32_t low, high; }; /* a quad: elements 0 and 2, 1 and 3 */

__device__ uint32_t bits_of(__half2 v) { return *(uint32_t *)&v; }
__device__ __half2 half2_of(uint32_t v) { return *(__half2 *)&v; }
__device__ __half2 twice(float v) { return __half2half2(__float2half_rn(v)); }

/* Codes in the four bytes of a word, below 256, to a quad: 1024 + code is exact in a half. */
__device__ struct two expand(uint32_t codes, float offset, __half2 scale, __half2 min) {
    const uint32_t magic = 0x64006400;
    __half2 shift = twice(1024 + offset);
    __half2 low = __hsub2(half2_of((codes & 0x00ff00ff) | magic), shift);
    __half2 high = __hsub2(half2_of((codes >> 8 & 0x00ff00ff) | magic), shift);
    return {bits_of(__hfma2(low, scale, __hneg2(min))), bits_of(__hfma2(high, scale, __hneg2(min)))};
}

template <class F> struct weights; /* load(), then quad(j); ask() brings what load() reads to L2 */

__device__ uint4 load16(const uint8_t *p) { return __ldg((const uint4 *)p); }

/* The scales and mins of sub-blocks 2 t and 2 t + 1, from a block's first 16 bytes: two bytes at a
 * time, the first four sub-blocks' six bits whole, the others' in two parts (q4_k_scale_min()). */
__device__ void scales_of(const uint4 &head, uint32_t t, float by, __half2 scale[2], __half2 min[2]) {
    uint32_t shift = t % 2 * 16, y = head.y >> shift, z = head.z >> shift, w = head.w >> shift;
    uint32_t s = t < 2 ? y & 0x3f3f : (w & 0x0f0f) | (y >> 2 & 0x3030);
    uint32_t m = t < 2 ? z & 0x3f3f : (w >> 4 & 0x0f0f) | (z >> 2 & 0x3030);
    float2 d = __half22float2(half2_of(head.x));
    for (uint32_t i = 0; i < 2; i++) {
        scale[i] = twice(d.x * (float)(s >> 8 * i & 255) * by);
        min[i] = twice(d.y * (float)(m >> 8 * i & 255) * by);
    }
}

/* Word j of the thread's 32 bytes of nibbles: low ones are weights 0 .. 31, high ones 32 .. 63. */
__device__ uint32_t nibbles(const uint4 nibble[2], int j) {
    const uint32_t *word = (const uint32_t *)nibble;
    return (j < 8 ? word[j] : word[j - 8] >> 4) & 0x0f0f0f0f;
}

template <> struct weights<format_q4_k> {
    uint4 nibble[2];
    __half2 scale[2], min[2];

    __device__ void load(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t, float by) {
        const uint8_t *block = row + (size_t)segment * sizeof(struct q4_k_block);
        nibble[0] = load16(block + 16 + 32 * t);
        nibble[1] = load16(block + 32 + 32 * t);
        scales_of(load16(block), t, by, scale, min);
    }
    static __device__ void ask(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t) {
        ::ask(row + (size_t)segment * sizeof(struct q4_k_block) + sizeof(struct q4_k_block) / 4 * t);
    }
    __device__ struct two quad(int j) const {
        return expand(nibbles(nibble, j), 0, scale[j / 8], min[j / 8]);
    }
};

template <> struct weights<format_q5_k> {
    uint4 nibble[2], high[2]; /* bits 0 and 1 of each byte of high are the thread's */
    __half2 scale[2], min[2];

    __device__ void load(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t, float by) {
        const uint8_t *block = row + (size_t)segment * sizeof(struct q5_k_block);
        high[0] = load16(block + 16);
        high[1] = load16(block + 32);
        uint32_t *word = (uint32_t *)high;
        for (int i = 0; i < 8; i++) word[i] >>= 2 * t;
        nibble[0] = load16(block + 48 + 32 * t);
        nibble[1] = load16(block + 64 + 32 * t);
        scales_of(load16(block), t, by, scale, min);
    }
    static __device__ void ask(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t) {
        ::ask(row + (size_t)segment * sizeof(struct q5_k_block) + sizeof(struct q5_k_block) / 4 * t);
    }
    __device__ struct two quad(int j) const {
        uint32_t fifth = ((const uint32_t *)high)[j % 8] >> j / 8 & 0x01010101;
        return expand(nibbles(nibble, j) | fifth << 4, 0, scale[j / 8], min[j / 8]);
    }
};

template <> struct weights<format_q6_k> {
    uint4 nibble[2], high;
    __half2 scale[4];

    __device__ void load(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t, float by) {
        uint32_t blocks = cols / SEGMENT;
        const uint8_t *highs = row + (size_t)blocks * 128, *scales = highs + (size_t)blocks * 64;
        nibble[0] = load16(row + (size_t)segment * 128 + 32 * t);
        nibble[1] = load16(row + (size_t)segment * 128 + 32 * t + 16);
        high = load16(highs + (size_t)segment * 64 + 16 * t);
        uint32_t four = *(const uint32_t *)(scales + (size_t)segment * 16 + 4 * t);
        float d = __half2float(((const __half *)(scales + (size_t)blocks * 16))[segment]) * by;
        for (int i = 0; i < 4; i++) scale[i] = twice(d * (float)(int8_t)(four >> 8 * i));
    }
    static __device__ void ask(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t) {
        ::ask(row + (size_t)segment * 128 + 32 * t);
        ::ask(row + (size_t)(cols / SEGMENT) * 128 + (size_t)segment * 64 + 16 * t);
    }
    __device__ struct two quad(int j) const {
        uint32_t upper = ((const uint32_t *)&high)[j % 4] >> j / 4 * 2 & 0x03030303;
        return expand(nibbles(nibble, j) | upper << 4, Q6_K_OFFSET, scale[j / 4], twice(0));
    }
};

template <> struct weights<format_q8_0> {
    uint4 code[4];
    __half2 scale[2];

    __device__ void load(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t, float by) {
        uint32_t blocks = cols / 32, first = segment * 8 + t * 2;
        const __half *d = (const __half *)(row + (size_t)blocks * 32);
        for (uint32_t i = 0; i < 2; i++) {
            bool there = first + i < blocks;
            const uint8_t *at = row + (size_t)(first + i) * 32;
            code[2 * i] = there ? load16(at) : make_uint4(0, 0, 0, 0);
            code[2 * i + 1] = there ? load16(at + 16) : make_uint4(0, 0, 0, 0);
            scale[i] = there ? twice(__half2float(d[first + i]) * by) : twice(0);
        }
    }
    static __device__ void ask(const uint8_t *row, uint32_t cols, uint32_t segment, uint32_t t) {
        for (uint32_t at = segment * SEGMENT + t * 64; at < min(cols, segment * SEGMENT + t * 64 + 64);
             at += 32)
            ::ask(row + at);
    }
    __device__ struct two quad(int j) const {
        const uint32_t *word = (const uint32_t *)code;
        return expand(word[j] ^ 0x80808080, Q8_0_OFFSET, scale[j / 8], twice(0));
    }
};

/* ---- products ---- */

__device__ void mma(float c[4], const struct two &g, const struct two &g8, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(g.low), "r"(g8.low), "r"(g.high), "r"(g8.high), "r"(b0), "r"(b1));
}

/* A segment of 16 rows and 8 N tokens; x[n]: what the lane has of group n's first pair. */
template <class F, int N>
__device__ __forceinline__ void multiply(const struct weights<F> &w, const struct weights<F> &w8,
                                         const uint4 *const x[N], float c[N][4]) {
#pragma unroll
    for (int pair = 0; pair < PAIRS; pair++) {
        struct two q = w.quad(2 * pair), q8 = w8.quad(2 * pair);
        struct two r = w.quad(2 * pair + 1), r8 = w8.quad(2 * pair + 1);
#pragma unroll
        for (int n = 0; n < N; n++) {
            uint4 v = x[n][pair * WARP];
            mma(c[n], q, q8, v.x, v.y);
            mma(c[n], r, r8, v.z, v.w);
        }
    }
}

/* 16 bytes to shared memory, on their way. */
__device__ inline void copy16(void *to, const void *from) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}
__device__ inline void copies_end() { asm volatile("cp.async.commit_group;"); }
/* All copies but those after the last `left` copies_end(). */
template <int LEFT> __device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}

#endif
