/* SPDX-License-Identifier: Apache-2.0
 *
 * index.cu: choosing what to attend to (graph_index_select and its kin): scores of a token's entries,
 * then the largest. The choice is exact: ranks are compared, which no two candidates share. */
#include "devices/cuda/kernels/cache.cuh"

/* What the token at pos has to choose from, in entries. */
__device__ uint32_t entries_of(const struct cuda_index &a, uint32_t pos) {
    return (pos + 1) / a.cache.every;
}

/* score = sum over heads of weight * max(q . k, 0), or of one head q . k. */
KERNEL_FN(index_scores, struct cuda_index) {
    take_turn();
    extern __shared__ float q[];
    uint32_t row = a.row0 + blockIdx.y, list = blockIdx.z, pos = a.step->pos[row];
    uint32_t in = a.step->seq_of[row], n = entries_of(a, pos), warps = blockDim.x / WARP;
    bool one = a.kind == INDEX_BLOCKS;
    uint32_t heads = one ? 1 : a.heads;
    const float *from = a.q + ((size_t)row * a.heads + (one ? list : 0)) * a.dim;
    for (uint32_t i = threadIdx.x; i < heads * a.dim; i += blockDim.x) q[i] = from[i];
    __syncthreads();
    if (is_quantized(a.cache.k_type)) turn_queries(q, heads * a.dim);
    float *out = a.scores + ((size_t)blockIdx.y * a.lists + list) * a.entries;
    for (uint32_t e = blockIdx.x * warps + threadIdx.x / WARP; e < n; e += gridDim.x * warps) {
        const uint8_t *k = block_of(a.cache, a.step, in, e / PAGE, 0) + e % PAGE * a.cache.k_bytes;
        float score = 0;
        for (uint32_t h = 0; h < heads; h++) {
            float dot = dot_key(q + h * a.dim, k, a.cache.k_type, a.dim);
            if (one) score = dot;
            else
                score = fmaf(a.weights ? a.weights[(size_t)row * a.heads + h] : 1, fmaxf(dot, 0),
                             score);
        }
        if (threadIdx.x % WARP == 0) out[e] = score;
    }
}

/* ---- picking ---- */

/* The larger score is the larger number, a NaN the largest; of equal ones the earlier candidate. */
__device__ uint64_t rank(float score, uint32_t at) {
    score += 0.0f; /* -0 is 0 */
    uint32_t bits = __float_as_uint(score);
    bits = isnan(score) ? ~0u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~at;
}

/* The score of candidate i: an entry, the largest of a block, or the last of one. */
__device__ float candidate(const struct cuda_index &a, const float *score, uint32_t n, uint32_t pos,
                           uint32_t i) {
    if (a.kind == INDEX_ENTRIES) return score[i];
    if (a.kind == INDEX_WHOLE) return score[(i + 1) * a.block - 1];
    if (i + a.local > pos / a.block) return INFINITY;
    float top = -INFINITY;
    for (uint32_t j = i * a.block; j < (i + 1) * a.block && j < n; j++)
        top = score[j] <= top ? top : score[j];
    return top;
}

__device__ uint32_t block_count(bool yes, uint32_t room[WARPS_MAX]) {
    uint32_t mine = __popc(__ballot_sync(~0u, yes)), all = 0;
    __syncthreads();
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = mine;
    __syncthreads();
    for (unsigned w = 0; w < blockDim.x / WARP; w++) all += room[w];
    return all;
}

/* The `used`-th largest rank of n > used candidates, found bit by bit. */
__device__ uint64_t least_rank(const struct cuda_index &a, const float *score, uint32_t entries,
                               uint32_t pos, uint32_t n, uint32_t room[WARPS_MAX]) {
    uint64_t least = 0;
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t trial = least | (uint64_t)1 << bit;
        uint32_t above = 0;
        for (uint32_t base = 0; base < n; base += blockDim.x) {
            uint32_t i = base + threadIdx.x;
            bool is = i < n && rank(candidate(a, score, entries, pos, i), i) >= trial;
            above += block_count(is, room);
        }
        if (above >= a.used) least = trial;
    }
    return least;
}

/* Places of the chosen, one after the other: `mine` among those of this turn, `all` of the turn. */
__device__ uint32_t place_of(bool yes, uint32_t room[WARPS_MAX], uint32_t *all) {
    uint32_t ballot = __ballot_sync(~0u, yes), at = __popc(ballot & ((1u << threadIdx.x % WARP) - 1));
    __syncthreads();
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = __popc(ballot);
    __syncthreads();
    *all = 0;
    for (unsigned w = 0; w < blockDim.x / WARP; w++) {
        if (w < threadIdx.x / WARP) at += room[w];
        *all += room[w];
    }
    return at;
}

/* Writes what candidate i, the at-th chosen, stands for; none lies after the token's own position.
 * Only a last block can be cut short, and it is the last that is chosen. */
__device__ void put_chosen(const struct cuda_index &a, float *y, uint32_t pos, uint32_t at,
                           uint32_t i) {
    uint32_t width = a.kind == INDEX_ENTRIES ? 1 : a.block;
    for (uint32_t j = 0; j < width; j++) {
        uint32_t p = i * width + j;
        if (a.kind == INDEX_ENTRIES || p <= pos) y[(size_t)at * width + j] = (float)p;
    }
}

KERNEL_FN(index_pick, struct cuda_index) {
    take_turn();
    __shared__ uint32_t room[WARPS_MAX];
    uint32_t row = a.row0 + blockIdx.x, list = blockIdx.y, pos = a.step->pos[row];
    uint32_t seen = entries_of(a, pos);
    uint32_t n = a.kind == INDEX_ENTRIES  ? seen
                 : a.kind == INDEX_BLOCKS ? (seen + a.block - 1) / a.block
                                          : seen / a.block;
    const float *score = a.scores + ((size_t)blockIdx.x * a.lists + list) * a.entries;
    float *y = a.y + ((size_t)row * a.lists + list) * a.cols;
    for (uint32_t i = threadIdx.x; i < a.cols; i += blockDim.x) y[i] = INFINITY;
    uint64_t least = n > a.used ? least_rank(a, score, seen, pos, n, room) : 0;
    __syncthreads();
    uint32_t count = 0, all;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        uint32_t i = base + threadIdx.x;
        bool is = i < n && (n <= a.used || rank(candidate(a, score, seen, pos, i), i) >= least);
        uint32_t at = count + place_of(is, room, &all);
        if (is) put_chosen(a, y, pos, at, i);
        count += all;
    }
    if (a.kind != INDEX_WHOLE) return;
    for (uint32_t i = seen - seen % a.block + threadIdx.x; i <= pos; i += blockDim.x)
        y[(size_t)count * a.block + i - (seen - seen % a.block)] = (float)i;
}
