/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.cu: products with weights of the commonest integer formats on tensor cores.
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
#include <cuda_fp16.h>

#include "devices/cuda/kernels/common.cuh"
#include "devices/cuda/kernels/formats.cuh"
#include "devices/cuda/kernels/halves.cuh"

enum { QUADS = 16, TILE = 16 /* rows */ };

/* ---- activations ---- */

/* A block a row; a thread 4 elements at a time. */
KERNEL_FN(halve, struct cuda_halve) {
    take_turn();
    __shared__ float room[WARPS_MAX];
    const float4 *x = (const float4 *)(a.x + (size_t)blockIdx.x * a.x_stride);
    struct row_peak peak = {0, true};
    for (uint32_t i = threadIdx.x; i < a.cols / 4; i += blockDim.x) add_peak(&peak, x[i]);
    halve_row(a, x, blockIdx.x, peak, room);
}

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

__device__ void ask(const uint8_t *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

__device__ uint4 load16(const uint8_t *p) { return __ldg((const uint4 *)p); }

/* The scales and mins of sub-blocks 2 t and 2 t + 1, as in q4_k.h, from a block's first 16 bytes. */
__device__ void scales_of(const uint4 &head, uint32_t t, float by, __half2 scale[2], __half2 min[2]) {
    const uint8_t scales[12] = {
        (uint8_t)head.y, (uint8_t)(head.y >> 8), (uint8_t)(head.y >> 16), (uint8_t)(head.y >> 24),
        (uint8_t)head.z, (uint8_t)(head.z >> 8), (uint8_t)(head.z >> 16), (uint8_t)(head.z >> 24),
        (uint8_t)head.w, (uint8_t)(head.w >> 8), (uint8_t)(head.w >> 16), (uint8_t)(head.w >> 24)};
    float2 d = __half22float2(half2_of(head.x));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t s = 0, m = 0;
        /* Constant places in `scales`, so that it stays in registers. */
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (k == t) q4_k_scale_min(scales, 2 * k + i, &s, &m);
        scale[i] = twice(d.x * (float)(int)s * by);
        min[i] = twice(d.y * (float)(int)m * by);
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

/* The weight that a block of rows belongs to; *block: counted from its first. */
__device__ const struct cuda_mma_weight &weight_of(const struct cuda_mma &a, uint32_t *block) {
    uint32_t i = 0;
    while (i + 1 < a.weights && *block >= a.weight[i].blocks) *block -= a.weight[i++].blocks;
    return a.weight[i];
}

/* Row r of w, or the last. */
__device__ const uint8_t *row_at(const struct cuda_mma_weight &w, uint32_t r) {
    return w.data + (size_t)(r < w.rows ? r : w.rows - 1) * w.row_bytes;
}

__device__ void put(const struct cuda_mma &a, const struct cuda_mma_weight &w, uint32_t r,
                    uint32_t token, float v) {
    if (r >= w.rows || token >= a.tokens) return;
    size_t at = (size_t)token * w.rows + r;
    v *= a.scale[token] * w.undo;
    if (w.bias) v += w.bias[r];
    w.y[at] = w.add ? w.add[at] + v : v;
}

enum { AHEAD = 2 /* segments of a warp that are asked for early */ };

/* Few tokens, up to 8 * N: a block is 16 rows, whose segments its warps take in turn; their sums are
 * kept apart until all are there. */
template <class F, int N> __device__ void few(const struct cuda_mma &a) {
    extern __shared__ float part[]; /* [segments][TILE][8 N] */
    uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    uint32_t warps = blockDim.x / WARP;
    uint32_t block = blockIdx.x, segments = (a.cols + SEGMENT - 1) / SEGMENT;
    const struct cuda_mma_weight &m = weight_of(a, &block);
    uint32_t row0 = block * TILE;
    const uint8_t *first = row_at(m, row0 + g), *second = row_at(m, row0 + g + 8);
    let_next_come();
    for (uint32_t i = 0, s = warp; i < AHEAD && s < segments; i++, s += warps) {
        weights<F>::ask(first, a.cols, s, t);
        weights<F>::ask(second, a.cols, s, t);
    }
    wait_for_last();
    for (uint32_t s = warp; s < segments; s += warps) {
        if (s + AHEAD * warps < segments) {
            weights<F>::ask(first, a.cols, s + AHEAD * warps, t);
            weights<F>::ask(second, a.cols, s + AHEAD * warps, t);
        }
        struct weights<F> w, w8;
        w.load(first, a.cols, s, t, m.by);
        w8.load(second, a.cols, s, t, m.by);
        float c[N][4] = {};
#pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            uint4 x[N];
#pragma unroll
            for (int n = 0; n < N; n++) {
                const __half *at = (const __half *)a.x +
                                   ((size_t)n * segments + s) * SEGMENT_HALVES + pair * PAIR_HALVES;
                x[n] = ((const uint4 *)at)[lane];
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                struct two q = w.quad(2 * pair + j), q8 = w8.quad(2 * pair + j);
#pragma unroll
                for (int n = 0; n < N; n++)
                    mma(c[n], q, q8, j ? x[n].z : x[n].x, j ? x[n].w : x[n].y);
            }
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            float *out = part + (size_t)s * TILE * 8 * N + 8 * n + 2 * t;
            out[g * 8 * N] = c[n][0];
            out[g * 8 * N + 1] = c[n][1];
            out[(g + 8) * 8 * N] = c[n][2];
            out[(g + 8) * 8 * N + 1] = c[n][3];
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < TILE * 8 * N; i += blockDim.x) {
        float sum = part[i];
        for (uint32_t s = 1; s < segments; s++) sum += part[(size_t)s * TILE * 8 * N + i];
        put(a, m, row0 + i / (8 * N), i % (8 * N), sum);
    }
}

/* More tokens: a block is WARPS warps of 16 TILES rows, times 8 GROUPS tokens, whose activations of a
 * segment lie in shared memory, those of the next on their way. */
template <int GROUPS>
__device__ void fetch(const struct cuda_mma &a, uint32_t group0, uint32_t segments, uint32_t s,
                      __half *to) {
    uint32_t groups = (a.tokens + GROUP - 1) / GROUP;
    for (uint32_t i = threadIdx.x; i < GROUPS * SEGMENT_HALVES / 8; i += blockDim.x) {
        uint32_t n = i / (SEGMENT_HALVES / 8), group = group0 + n;
        if (group >= groups) group = groups - 1;
        const __half *from = (const __half *)a.x +
                             ((size_t)group * segments + s) * SEGMENT_HALVES +
                             i % (SEGMENT_HALVES / 8) * 8;
        uint32_t at = (uint32_t)__cvta_generic_to_shared(to + (size_t)i * 8);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
    }
    asm volatile("cp.async.commit_group;");
}

template <class F, int TILES, int GROUPS, int WARPS>
__device__ void many(const struct cuda_mma &a) {
    extern __shared__ __align__(16) __half tile[]; /* [2][groups][SEGMENT_HALVES] */
    enum { TILE_HALVES = GROUPS * SEGMENT_HALVES };
    uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    uint32_t block = blockIdx.y, segments = (a.cols + SEGMENT - 1) / SEGMENT;
    const struct cuda_mma_weight &of = weight_of(a, &block);
    uint32_t row0 = (block * WARPS + threadIdx.x / WARP) * TILE * TILES;
    uint32_t group0 = blockIdx.x * GROUPS;
    float sum[TILES][GROUPS][4] = {};
    fetch<GROUPS>(a, group0, segments, 0, tile);
    for (uint32_t s = 0; s < segments; s++) {
        if (s + 1 < segments)
            fetch<GROUPS>(a, group0, segments, s + 1, tile + (s + 1) % 2 * TILE_HALVES);
        if (s + 1 < segments) asm volatile("cp.async.wait_group 1;");
        else asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        const uint4 *x = (const uint4 *)(tile + s % 2 * TILE_HALVES) + lane;
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            struct weights<F> w, w8;
            w.load(row_at(of, row0 + m * TILE + g), a.cols, s, t, of.by);
            w8.load(row_at(of, row0 + m * TILE + g + 8), a.cols, s, t, of.by);
            float c[GROUPS][4] = {};
#pragma unroll
            for (int pair = 0; pair < PAIRS; pair++) {
                struct two q = w.quad(2 * pair), q8 = w8.quad(2 * pair);
                struct two r = w.quad(2 * pair + 1), r8 = w8.quad(2 * pair + 1);
#pragma unroll
                for (int n = 0; n < GROUPS; n++) {
                    uint4 v = x[(n * PAIRS + pair) * WARP];
                    mma(c[n], q, q8, v.x, v.y);
                    mma(c[n], r, r8, v.z, v.w);
                }
            }
#pragma unroll
            for (int n = 0; n < GROUPS; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum[m][n][i] = s == 0 ? c[n][i] : sum[m][n][i] + c[n][i];
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                put(a, of, row0 + m * TILE + g + i / 2 * 8, (group0 + n) * GROUP + 2 * t + i % 2,
                    sum[m][n][i]);
}

#define KERNELS(name)                                                                       \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        mma_8_##name(const __grid_constant__ struct cuda_mma a) {                                 \
        few<format_##name, 1>(a);                                                                 \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        mma_32_##name(const __grid_constant__ struct cuda_mma a) {                                \
        few<format_##name, 4>(a);                                                                 \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 1)                                          \
        mma_many_##name(const __grid_constant__ struct cuda_mma a) {                              \
        take_turn();                                                                              \
        many<format_##name, 2, 8, 8>(a);                                                          \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(128, 4)                                          \
        mma_64_##name(const __grid_constant__ struct cuda_mma a) {                                \
        take_turn();                                                                              \
        many<format_##name, 1, 4, 4>(a);                                                          \
    }
#define FORMAT(name) KERNELS(name)
#include "devices/cuda/kernels/mma.def"
