/* SPDX-License-Identifier: Apache-2.0
 *
 * mma_experts.cu: products of experts on tensor cores, by mma.cuh's numerics. Pairs of a token and
 * an expert lie by expert (experts.cu), cut into tiles of one expert each. A grid is as large as the
 * step's shape allows tiles to be many; blocks behind the last end at once, so that the host need
 * not know the routes. Rows of activations are gathered: an mma's column is a row of x, wherever
 * that lies, so a pair's bits do not depend on its tile. */
#include "devices/cuda/kernels/mma.cuh"

/* The weight that a block of rows belongs to; *block: counted from its first. */
__device__ const struct cuda_mma_expert &weight_of(const struct cuda_mma_experts &a,
                                                   uint32_t *block) {
    uint32_t i = 0;
    while (i + 1 < a.weights && *block >= a.weight[i].blocks) *block -= a.weight[i++].blocks;
    return a.weight[i];
}

/* One expert's matrix. */
struct matrix {
    const uint8_t *data;
    const float *bias;
    float *y;
    uint64_t row_bytes;
    uint32_t rows;
    float by, undo;

    __device__ matrix(const struct cuda_mma_expert &w, uint32_t expert)
        : data(w.data + expert * w.matrix_bytes),
          bias(w.bias ? w.bias + (size_t)expert * w.rows : NULL), y(w.y), row_bytes(w.row_bytes),
          rows(w.rows), by(w.by[expert]), undo(1 / by) {}
    /* Row r, or the last. */
    __device__ const uint8_t *row(uint32_t r) const {
        return data + (size_t)(r < rows ? r : rows - 1) * row_bytes;
    }
};

/* The row of x of the tile's i-th pair, or of its last. */
__device__ uint32_t row_of(const struct cuda_mma_experts &a, const struct cuda_tile &tile,
                           uint32_t i) {
    uint32_t pair = tile.first + min(i, tile.count - 1);
    return a.token ? a.token[pair] : pair;
}

/* What a thread t has of a row's first segment; the next ones are SEGMENT_HALVES behind. */
__device__ const __half *halves_of(const struct cuda_mma_experts &a, uint32_t segments,
                                   uint32_t row, uint32_t t) {
    return (const __half *)a.x + (size_t)(row / GROUP) * segments * SEGMENT_HALVES +
           (row % GROUP * 4 + t) * 8;
}

/* by: what undoes the scales of the row of x and of the matrix. */
__device__ void put(const struct matrix &m, const struct cuda_tile &tile, uint32_t r, uint32_t i,
                    float v, float by) {
    if (r >= m.rows || i >= tile.count) return;
    v *= by;
    m.y[(size_t)(tile.first + i) * m.rows + r] = m.bias ? v + m.bias[r] : v;
}

/* Rows from row0 on of pairs whose expert has no matrix. */
__device__ void put_none(const struct cuda_mma_expert &w, const struct cuda_tile &tile,
                         uint32_t row0, uint32_t n) {
    n = min(n, w.rows - row0);
    for (uint32_t i = threadIdx.x; i < tile.count * n; i += blockDim.x)
        w.y[(size_t)(tile.first + i / n) * w.rows + row0 + i % n] = 0;
}

/* Up to 8 pairs a tile: a block is a.stack times 16 rows, whose segments its warps take in turn;
 * their sums are kept apart until all are there. */
template <class F> __device__ void few(const struct cuda_mma_experts &a) {
    extern __shared__ float part[]; /* [stack][segments][GROUP][TILE] */
    enum { PART = GROUP * TILE };
    if (blockIdx.x >= *a.tiles) return;
    const struct cuda_tile tile = a.tile[blockIdx.x];
    uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, block = blockIdx.y;
    uint32_t segments = (a.cols + SEGMENT - 1) / SEGMENT;
    const struct cuda_mma_expert &of = weight_of(a, &block);
    uint32_t row0 = block * a.stack * TILE;
    if (tile.expert >= of.matrices) {
        put_none(of, tile, row0, a.stack * TILE);
        return;
    }
    const struct matrix m(of, tile.expert);
    uint32_t warps = blockDim.x / WARP;
    for (uint32_t i = threadIdx.x / WARP + warps; i < a.stack * segments; i += warps) {
        uint32_t r = row0 + i / segments * TILE + g, s = i % segments;
        weights<F>::ask(m.row(r), a.cols, s, t);
        weights<F>::ask(m.row(r + 8), a.cols, s, t);
    }
    const __half *halves = halves_of(a, segments, row_of(a, tile, g), t);
    for (uint32_t i = threadIdx.x / WARP; i < a.stack * segments; i += warps) {
        uint32_t r = row0 + i / segments * TILE + g, s = i % segments;
        struct weights<F> w, w8;
        w.load(m.row(r), a.cols, s, t, m.by);
        w8.load(m.row(r + 8), a.cols, s, t, m.by);
        const uint4 *x[1] = {(const uint4 *)(halves + (size_t)s * SEGMENT_HALVES)};
        float c[1][4] = {};
        multiply<F, 1>(w, w8, x, c);
        float *out = part + (size_t)i * PART + 2 * t * TILE + g;
        out[0] = c[0][0];
        out[TILE] = c[0][1];
        out[8] = c[0][2];
        out[TILE + 8] = c[0][3];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < a.stack * tile.count * TILE; i += blockDim.x) {
        uint32_t stack = i / (tile.count * TILE), at = i % (tile.count * TILE);
        const float *from = part + (size_t)stack * segments * PART + at;
        float sum = from[0];
        for (uint32_t s = 1; s < segments; s++) sum += from[(size_t)s * PART];
        put(m, tile, row0 + stack * TILE + at % TILE, at / TILE, sum,
            a.scale[row_of(a, tile, at / TILE)] * m.undo);
    }
}

/* Up to 40: a block is 8 warps of 16 rows, times 8 GROUPS pairs, whose activations of a segment lie
 * in shared memory, those of the next on their way. */
enum { WARPS = 8, HEIGHT = 40 };
struct many_room {
    uint32_t row[HEIGHT]; /* of x */
    float by[HEIGHT];     /* see put() */
    __half x[1];          /* [2][GROUPS][SEGMENT_HALVES] */
};
extern __shared__ __align__(16) uint8_t many_shared[];

template <class F, int GROUPS>
__device__ void many(const struct cuda_mma_experts &a, const struct cuda_tile &tile,
                     const struct matrix &m, uint32_t row0) {
    struct many_room &room = *(struct many_room *)many_shared;
    static_assert(WARPS * WARP * 8 == SEGMENT_HALVES, "a thread copies 16 bytes of each group");
    uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    uint32_t segments = (a.cols + SEGMENT - 1) / SEGMENT;
    uint32_t at = threadIdx.x / WARP * PAIR_HALVES;
    row0 += threadIdx.x / WARP * TILE;
    const uint8_t *first = m.row(row0 + g), *second = m.row(row0 + g + 8);
    auto fetch = [&](uint32_t s) {
        __half *to = room.x + s % 2 * GROUPS * SEGMENT_HALVES + threadIdx.x * 8;
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
            copy16(to + n * SEGMENT_HALVES, halves_of(a, segments, room.row[n * GROUP + g], t) + at +
                                                (size_t)s * SEGMENT_HALVES);
        copies_end();
    };
    auto ask = [&](uint32_t s) {
        if (s >= segments) return;
        weights<F>::ask(first, a.cols, s, t);
        weights<F>::ask(second, a.cols, s, t);
    };
    float sum[GROUPS][4] = {};
    for (uint32_t s = 0; s < AHEAD; s++) ask(s);
    fetch(0);
    for (uint32_t s = 0; s < segments; s++) {
        ask(s + AHEAD);
        struct weights<F> w, w8;
        w.load(first, a.cols, s, t, m.by);
        w8.load(second, a.cols, s, t, m.by);
        if (s + 1 < segments) {
            fetch(s + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        __syncthreads();
        const uint4 *x[GROUPS];
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
            x[n] = (const uint4 *)(room.x + (s % 2 * GROUPS + n) * SEGMENT_HALVES) + lane;
        float c[GROUPS][4] = {};
        multiply<F, GROUPS>(w, w8, x, c);
#pragma unroll
        for (int n = 0; n < GROUPS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) sum[n][i] = s == 0 ? c[n][i] : sum[n][i] + c[n][i];
        __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < GROUPS; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t at = n * GROUP + 2 * t + i % 2;
            put(m, tile, row0 + g + i / 2 * 8, at, sum[n][i], room.by[at]);
        }
}

/* As few groups as the tile has. */
template <class F> __device__ void many_of(const struct cuda_mma_experts &a) {
    if (blockIdx.x >= *a.tiles) return;
    const struct cuda_tile tile = a.tile[blockIdx.x];
    uint32_t block = blockIdx.y, groups = (tile.count + GROUP - 1) / GROUP;
    const struct cuda_mma_expert &of = weight_of(a, &block);
    uint32_t row0 = block * WARPS * TILE;
    if (tile.expert >= of.matrices) {
        put_none(of, tile, row0, WARPS * TILE);
        return;
    }
    const struct matrix m(of, tile.expert);
    struct many_room &room = *(struct many_room *)many_shared;
    if (threadIdx.x < HEIGHT) {
        uint32_t row = row_of(a, tile, threadIdx.x);
        room.row[threadIdx.x] = row;
        room.by[threadIdx.x] = a.scale[row] * m.undo;
    }
    __syncthreads();
    if (groups <= 2) many<F, 2>(a, tile, m, row0);
    else if (groups <= 4) many<F, 4>(a, tile, m, row0);
    else many<F, 5>(a, tile, m, row0);
}

#define FORMAT(name)                                                                              \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        mma_experts_8_##name(const __grid_constant__ struct cuda_mma_experts a) {                 \
        take_turn();                                                                              \
        few<format_##name>(a);                                                                    \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP, 2)                                  \
        mma_experts_40_##name(const __grid_constant__ struct cuda_mma_experts a) {                \
        take_turn();                                                                              \
        many_of<format_##name>(a);                                                                \
    }
#include "devices/cuda/kernels/mma.def"
