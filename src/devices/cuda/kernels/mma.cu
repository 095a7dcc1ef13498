/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.cu: products of all rows with weights of the commonest integer formats on tensor cores; the
 * numerics are mma.cuh's. */
#include "devices/cuda/kernels/mma.cuh"

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

/* ---- products ---- */

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

/* Few tokens, 8 * N of them: a block is 16 rows, whose segments its warps take in turn; their sums are
 * kept apart until all are there. */
template <class F, int N> __device__ void few(const struct cuda_mma &a) {
    extern __shared__ float part[]; /* [segments][TILE][8 N] */
    uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    uint32_t warps = blockDim.x / WARP;
    uint32_t block = blockIdx.x, segments = (a.cols + SEGMENT - 1) / SEGMENT;
    uint32_t group0 = blockIdx.y * N, groups = (a.tokens + GROUP - 1) / GROUP;
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
        const uint4 *x[N];
#pragma unroll
        for (int n = 0; n < N; n++)
            x[n] = (const uint4 *)((const __half *)a.x +
                                   ((size_t)min(group0 + n, groups - 1) * segments + s) *
                                       SEGMENT_HALVES) + lane;
        float c[N][4] = {};
        multiply<F, N>(w, w8, x, c);
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
        put(a, m, row0 + i / (8 * N), group0 * GROUP + i % (8 * N), sum);
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
        copy16(to + (size_t)i * 8, from);
    }
    copies_end();
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
    auto ask = [&](uint32_t s) {
        for (int m = 0; m < TILES && s < segments; m++) {
            weights<F>::ask(row_at(of, row0 + m * TILE + g), a.cols, s, t);
            weights<F>::ask(row_at(of, row0 + m * TILE + g + 8), a.cols, s, t);
        }
    };
    for (uint32_t s = 0; s < AHEAD; s++) ask(s);
    fetch<GROUPS>(a, group0, segments, 0, tile);
    for (uint32_t s = 0; s < segments; s++) {
        ask(s + AHEAD);
        if (s + 1 < segments)
            fetch<GROUPS>(a, group0, segments, s + 1, tile + (s + 1) % 2 * TILE_HALVES);
        if (s + 1 < segments) copies_wait<1>();
        else copies_wait<0>();
        __syncthreads();
        const uint4 *x[GROUPS];
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
            x[n] = (const uint4 *)(tile + s % 2 * TILE_HALVES) + n * PAIRS * WARP + lane;
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            struct weights<F> w, w8;
            w.load(row_at(of, row0 + m * TILE + g), a.cols, s, t, of.by);
            w8.load(row_at(of, row0 + m * TILE + g + 8), a.cols, s, t, of.by);
            float c[GROUPS][4] = {};
            multiply<F, GROUPS>(w, w8, x, c);
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
