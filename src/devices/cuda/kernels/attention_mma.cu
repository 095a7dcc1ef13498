/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_mma.cu: attention on tensor cores, of float16 keys and values.
 *
 * Numerics, the same for one token and for thousands. A row is a token's head. Positions are cut
 * into splits of SPLIT at absolute multiples; of a split
 *     q        scaled by a power of two as in halves.cuh, then in two pieces of float16
 *     score    one chain of m16n8k16 from zero, features in order, the upper piece before the lower
 *     top      of the row's scores, in powers of two (times log2 e)
 *     weight   2^(score - top + LIFT), in two pieces of float16; 0 where the row does not look
 *     mass     each of 4 lanes its columns in order, by groups of 32 positions, then the groups in
 *              order, then a butterfly
 *     out      one chain a column, positions in order, the upper piece of weights before the lower
 * and splits are added in order (join()). Rows and columns of an mma do not meet, and a weight of 0
 * adds nothing, so a row's bits depend on its own positions alone: not on the tile, and not on which
 * of the two kernels has it:
 *     few     a block is 16 rows and one split; its 4 warps share the positions, then the columns
 *     many    a block is 64 rows and all their splits, one after the other; a warp has 16 rows
 *
 * In shared memory a row is chunks of 16 bytes, which change places by the row's last three bits: 8
 * rows of one chunk, as ldmatrix reads them, lie in different banks. */
#include <cuda_fp16.h>

#include "devices/cuda/kernels/attention.cuh"
#include "devices/cuda/kernels/halves.cuh"

enum { ROWS = 16, MANY_WARPS = 4, THREADS = 128, STEP = 16 /* of K in an mma */ };
enum { BLOCKS = SPLIT / 8, GROUPS = 4 /* of positions */, STEPS = SPLIT / STEP };
#define LIFT 15.0f
#define LOG2_E 1.4426950408889634f

/* ---- instructions ---- */

__device__ float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ void mma(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void load_matrices(uint32_t m[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at)
                 : "memory");
}
__device__ void load_transposed(uint32_t m[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at)
                 : "memory");
}

/* 16 bytes, or zeros. */
__device__ void ask16(uint32_t to, const uint8_t *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
__device__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER> __device__ void wait_group() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

/* ---- shared memory ---- */

/* Byte of a chunk of a row of DIM halves. */
template <int DIM> __device__ uint32_t place(uint32_t row, uint32_t chunk) {
    return (row * (DIM / 8) + (chunk ^ (row & 7))) * 16;
}

/* The four 8 x 8 matrices of rows row .. row + 15 and 16 columns: of each lane the byte of its row,
 * of the first column 0. Of step s it is `at ^ 32 s`. */
template <int DIM> __device__ uint32_t matrix_rows(uint32_t row) {
    uint32_t lane = threadIdx.x % WARP;
    return place<DIM>(row + lane % 16, lane / 16);
}
/* The same of 16 columns of B that lie as rows: of keys. */
template <int DIM> __device__ uint32_t key_rows(uint32_t row) {
    uint32_t lane = threadIdx.x % WARP;
    return place<DIM>(row + lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

struct two { uint32_t high, low; };

/* Two numbers in two pieces each. */
__device__ struct two pieces(float x, float y) {
    __half2 high = __floats2half2_rn(x, y);
    float2 up = __half22float2(high);
    __half2 low = __floats2half2_rn(x - up.x, y - up.y);
    return {*(uint32_t *)&high, *(uint32_t *)&low};
}

/* A row of q by a warp; what undoes its scale. q NULL: zeros. */
template <int DIM>
__device__ float put_query(const float *q, uint32_t dim, uint8_t *high, uint8_t *low,
                           uint32_t row) {
    enum { LOADS = DIM > 128 ? 2 : 1 };
    uint32_t lane = threadIdx.x % WARP;
    float4 v[LOADS];
    float top = 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        uint32_t d = 4 * lane + 128 * i;
        v[i] = q && d < dim ? *(const float4 *)(q + d) : make_float4(0, 0, 0, 0);
        top = fmaxf(top, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)),
                               fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    }
    top = warp_max(top);
    int power = top > 0 && top < INFINITY ? 7 - ((int)(__float_as_uint(top) >> 23) - 127) : 0;
    power = power > 100 ? 100 : power < -100 ? -100 : power;
    float by = power_of_two(power);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        uint32_t d = 4 * lane + 128 * i;
        if (d >= DIM) continue;
        struct two a = pieces(v[i].x * by, v[i].y * by), b = pieces(v[i].z * by, v[i].w * by);
        uint32_t at = place<DIM>(row, d / 8) + d % 8 * 2;
        *(uint2 *)(high + at) = make_uint2(a.high, b.high);
        *(uint2 *)(low + at) = make_uint2(a.low, b.low);
    }
    return power_of_two(-power);
}

/* ---- keys and values of a split ---- */

/* Its pages; NULL: given back, or nobody looks there. */
struct pages { const uint8_t *block[SPLIT / PAGE]; };

__device__ struct pages pages_in(const struct cuda_attention &a, const struct tile &t,
                                 uint32_t base, struct seen seen) {
    struct pages k;
#pragma unroll
    for (uint32_t i = 0; i < SPLIT / PAGE; i++) {
        bool wanted = seen.begin < (i + 1) * PAGE && seen.end > i * PAGE;
        k.block[i] = wanted ? block_of(a.cache, a.step, t.in, base / PAGE + i, t.kv_head) : NULL;
    }
    return k;
}

/* Rows from .. to - 1 of the split; zeros for those that are not seen. */
template <int DIM>
__device__ void ask_rows(const struct cuda_cache &c, const struct pages &pages, bool values,
                         uint32_t from, uint32_t to, struct seen seen, uint32_t room) {
    uint32_t bytes = values ? c.v_bytes : c.k_bytes, first = values ? (uint32_t)c.v_at : 0;
    for (uint32_t i = from * (DIM / 8) + threadIdx.x; i < to * (DIM / 8); i += THREADS) {
        uint32_t row = i / (DIM / 8), chunk = i % (DIM / 8);
        const uint8_t *block = row < PAGE ? pages.block[0] : pages.block[1];
        bool there = block && row >= seen.begin && row < seen.end && chunk * 16 < bytes;
        ask16(room + place<DIM>(row, chunk),
              there ? block + first + row % PAGE * bytes + chunk * 16 : c.layer, there);
    }
}

/* Of [begin, end) of the sequence, what lies in the split at base. */
__device__ struct seen in_split(struct seen s, uint32_t base) {
    return {min(max(s.begin, base), base + SPLIT) - base,
            min(max(s.end, base), base + SPLIT) - base};
}

/* What any row of the tile sees: neither end falls from token to token. */
__device__ struct seen seen_by_tile(const struct cuda_attention &a, const struct tile &t) {
    const uint32_t *pos = a.step->pos + t.row;
    return {seen_from(a, t.seq, pos[0]).begin, seen_from(a, t.seq, pos[t.tokens - 1]).end};
}

/* ---- a row ---- */

struct view {
    struct seen seen;
    uint32_t pos, row, head; /* row: of the step */
    float by, slope;         /* of its scores */
    bool there;
};

__device__ struct view view_of(const struct cuda_attention &a, const struct tile &t, uint32_t r,
                               float undo) {
    struct view v = {{0, 0}, 0, 0, 0, 0, 0, r < t.tokens * t.heads};
    if (!v.there) return v;
    v.row = t.row + r / t.heads;
    v.head = t.head + r % t.heads;
    v.pos = a.step->pos[v.row];
    v.seen = seen_from(a, t.seq, v.pos);
    v.by = undo * a.scale * (a.softcap > 0 ? 1.0f : LOG2_E);
    v.slope = a.alibi ? a.alibi[v.head] * LOG2_E : 0;
    return v;
}

/* Of N blocks of 8 positions from `first` on, of two rows: element i of a block is row i / 2, column
 * 2 t + i % 2. What is not seen becomes -infinity. */
template <int N>
__device__ void finish_scores(const struct cuda_attention &a, const struct view v[2],
                              const struct pages &pages, uint32_t base, uint32_t first,
                              float s[N][4], float top[2]) {
    uint32_t t = threadIdx.x % 4;
    struct seen in[2] = {in_split(v[0].seen, base), in_split(v[1].seen, base)};
    bool whole = pages.block[0] && pages.block[1];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        if (!pages.block[0]) in[r].begin = max(in[r].begin, PAGE);
        if (!pages.block[1]) in[r].end = min(in[r].end, PAGE);
        whole = whole && in[r].begin == 0 && in[r].end == SPLIT;
    }
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[j][i] *= v[i / 2].by;
    if (a.softcap > 0) {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[j][i] = a.softcap * tanhf(s[j][i] / a.softcap) * LOG2_E;
    }
    if (a.alibi) {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int32_t key = base + first + 8 * j + 2 * t + i % 2;
                s[j][i] = fmaf(v[i / 2].slope, (float)(key - (int32_t)v[i / 2].pos), s[j][i]);
            }
    }
    if (!whole) {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t at = first + 8 * j + 2 * t + i % 2;
                bool sees = at >= in[i / 2].begin && at < in[i / 2].end;
                s[j][i] = sees ? s[j][i] : -INFINITY;
            }
    }
    top[0] = top[1] = -INFINITY;
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) top[i / 2] = fmaxf(top[i / 2], s[j][i]);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 1));
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 2));
    }
}

/* Weights of a group of 32 positions, whose sums by row are this thread's part of the masses. */
__device__ void weigh(float s[4][4], const float shift[2], float mass[2]) {
    mass[0] = mass[1] = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[j][i] = exp2_of(s[j][i] + shift[i / 2]);
            mass[i / 2] += s[j][i];
        }
}
__device__ float shift_of(float top) { return top == -INFINITY ? 0 : LIFT - top; }

__device__ float add_lanes(float mass) {
    mass += __shfl_xor_sync(~0u, mass, 1);
    return mass + __shfl_xor_sync(~0u, mass, 2);
}

/* Scores of 16 rows of q, the first `row`, with the 8 N keys from `key` on. */
template <int DIM, int N>
__device__ void score(uint32_t high, uint32_t low, uint32_t row, uint32_t keys, uint32_t key,
                      uint32_t k_dim, float s[N][4]) {
    uint32_t rows = matrix_rows<DIM>(row), columns = key_rows<DIM>(key);
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[j][i] = 0;
#pragma unroll
    for (int step = 0; step < DIM / STEP; step++) {
        if (step * STEP >= k_dim) break;
        uint32_t up[4], down[4];
        load_matrices(up, high + (rows ^ step * 32));
        load_matrices(down, low + (rows ^ step * 32));
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            uint32_t k[4];
            load_matrices(k, keys + (columns ^ step * 32) + j * 8 * DIM * 2);
            mma(s[j], up, k[0], k[1]);
            mma(s[j + 1], up, k[2], k[3]);
            mma(s[j], down, k[0], k[1]);
            mma(s[j + 1], down, k[2], k[3]);
        }
    }
}

/* What splits make together: each is added so, in order. */
struct share { float old, more; };

__device__ struct share share_of(float top, float split_top) {
    float all = fmaxf(top, split_top);
    return {top == -INFINITY ? 0 : exp2_of(top - all),
            split_top == -INFINITY ? 0 : exp2_of(split_top - all)};
}
__device__ float join(float sum, struct share by, float more) {
    return fmaf(sum, by.old, more * by.more);
}

/* The sinks are logits without a value. by: of the sums. */
__device__ float finish_mass(const struct cuda_attention &a, uint32_t row, uint32_t head, float top,
                             float mass, float *by) {
    *by = 1;
    if (!a.sinks && !a.token_sinks) return mass;
    float sink[2], all = top;
    for (int i = 0; i < 2; i++) all = fmaxf(all, sink[i] = sink_of(a, row, head, i) * LOG2_E);
    *by = top == -INFINITY ? 0 : exp2_of(top - all);
    mass *= *by;
    for (int i = 0; i < 2; i++)
        if (sink[i] != -INFINITY) mass += exp2_of(sink[i] - all + LIFT);
    return mass;
}
/* + 0: a sum of nothing but zeros has no sign, however many there were. */
__device__ float finish_sum(float sum, float by, float mass) { return (sum * by + 0.0f) / mass; }

/* ---- few rows ---- */

template <int DIM> __device__ void few(const struct cuda_attention &a) {
    extern __shared__ __align__(128) uint8_t room[]; /* q: [2][ROWS], keys, values [SPLIT] */
    __shared__ float undo[ROWS], tops[GROUPS][ROWS], masses[GROUPS][ROWS][4];
    enum { ROW_BYTES = DIM * 2 };
    uint8_t *high = room, *low = high + ROWS * ROW_BYTES, *keys = low + ROWS * ROW_BYTES;
    uint8_t *values = keys + SPLIT * ROW_BYTES, *weights = keys; /* [2][ROWS][SPLIT], in the end */
    uint32_t at = (uint32_t)__cvta_generic_to_shared(room);
    uint32_t keys_at = at + 2 * ROWS * ROW_BYTES, values_at = keys_at + SPLIT * ROW_BYTES;
    uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    let_next_come();
    struct tile tile;
    if (!make_tile(a, blockIdx.x, blockIdx.y, blockIdx.z, &tile)) {
        wait_for_last();
        return;
    }
    uint32_t base = tile.base, rows = tile.tokens * tile.heads;
    struct seen seen = in_split(seen_by_tile(a, tile), base);
    if (seen.begin >= seen.end) {
        wait_for_last();
        if (threadIdx.x < rows) {
            uint32_t r = threadIdx.x;
            *part_of(a, tile.row + r / tile.heads, tile.head + r % tile.heads, blockIdx.z) =
                -INFINITY;
        }
        return;
    }
    /* What steps before this one have stored need not wait for the kernels before this one. */
    struct pages pages = pages_in(a, tile, base, seen);
    uint32_t from = seen.begin / STEP * STEP, end = (seen.end + STEP - 1) / STEP * STEP;
    uint32_t old = min(max(tile.seq.past, base + from), base + end) - base;
    ask_rows<DIM>(a.cache, pages, false, from, old, seen, keys_at);
    close_group();
    ask_rows<DIM>(a.cache, pages, true, from, old, seen, values_at);
    close_group();
    wait_for_last();
    ask_rows<DIM>(a.cache, pages, false, old, end, seen, keys_at);
    ask_rows<DIM>(a.cache, pages, true, old, end, seen, values_at);
    close_group();
    for (uint32_t r = warp; r < ROWS; r += THREADS / WARP) {
        size_t row = (size_t)(tile.row + r / tile.heads) * a.heads + tile.head + r % tile.heads;
        float by = put_query<DIM>(r < rows ? a.q + row * a.cache.k_dim : NULL, a.cache.k_dim, high,
                                  low, r);
        if (lane == 0) undo[r] = by;
    }
    if (old < end) wait_group<0>();
    else wait_group<2>();
    __syncthreads();

    struct view v[2] = {view_of(a, tile, g, undo[g]), view_of(a, tile, g + 8, undo[g + 8])};
    float s[4][4], top[2], shift[2], mass[2];
    uint32_t first = warp * 32;
    score<DIM, 4>(at, at + ROWS * ROW_BYTES, 0, keys_at, first, a.cache.k_dim, s);
    finish_scores<4>(a, v, pages, base, first, s, top);
    for (int r = 0; r < 2; r++)
        if (t == 0) tops[warp][g + 8 * r] = top[r];
    __syncthreads();
    for (int r = 0; r < 2; r++) {
        for (int w = 0; w < GROUPS; w++) top[r] = fmaxf(top[r], tops[w][g + 8 * r]);
        shift[r] = shift_of(top[r]);
    }
    weigh(s, shift, mass);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        masses[warp][g + 8 * r][t] = mass[r];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            struct two p = pieces(s[j][2 * r], s[j][2 * r + 1]);
            uint32_t to = place<SPLIT>(g + 8 * r, first / 8 + j) + 4 * t;
            *(uint32_t *)(weights + to) = p.high;
            *(uint32_t *)(weights + ROWS * SPLIT * 2 + to) = p.low;
        }
    }
    wait_group<0>();
    __syncthreads();

    if (threadIdx.x < ROWS * 4) {
        uint32_t r = threadIdx.x / 4;
        float all = add_lanes(((masses[0][r][t] + masses[1][r][t]) + masses[2][r][t]) +
                              masses[3][r][t]);
        if (t == 0 && r < rows) {
            float *part =
                part_of(a, tile.row + r / tile.heads, tile.head + r % tile.heads, blockIdx.z);
            float most = fmaxf(fmaxf(tops[0][r], tops[1][r]), fmaxf(tops[2][r], tops[3][r]));
            part[0] = isnan(all) ? INFINITY : most; /* a top leaves NaN out */
            part[1] = all;
        }
    }
    for (uint32_t d = warp * 16; d < a.cache.v_dim; d += THREADS / WARP * 16) {
        float o[2][4] = {};
        for (uint32_t step = from / STEP; step < end / STEP; step++) {
            uint32_t up[4], down[4], b[4];
            load_matrices(up, keys_at + (matrix_rows<SPLIT>(0) ^ step * 32));
            load_matrices(down, keys_at + ROWS * SPLIT * 2 + (matrix_rows<SPLIT>(0) ^ step * 32));
            load_transposed(b, values_at + (matrix_rows<DIM>(step * STEP) ^ d * 2));
#pragma unroll
            for (int n = 0; n < 2; n++) {
                mma(o[n], up, b[2 * n], b[2 * n + 1]);
                mma(o[n], down, b[2 * n], b[2 * n + 1]);
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (!v[r].there) continue;
            float *part = part_of(a, v[r].row, v[r].head, blockIdx.z) + 2 + d + 2 * t;
#pragma unroll
            for (int n = 0; n < 2; n++)
                *(float2 *)(part + 8 * n) = make_float2(o[n][2 * r], o[n][2 * r + 1]);
        }
    }
}

/* ---- many rows ---- */

/* Values of a split weighted, for COLUMNS columns from d on, of 16 rows. */
template <int DIM, int COLUMNS>
__device__ void sum_values(const uint32_t up[STEPS][4], const uint32_t down[STEPS][4],
                           uint32_t values, int d, float o[COLUMNS / 8][4]) {
    uint32_t rows = matrix_rows<DIM>(0);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[n][i] = 0;
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n += 2) {
            uint32_t b[4];
            load_transposed(b, values + (rows ^ (d + 8 * n) * 2) + step * STEP * DIM * 2);
            mma(o[n], up[step], b[0], b[1]);
            mma(o[n + 1], up[step], b[2], b[3]);
            mma(o[n], down[step], b[0], b[1]);
            mma(o[n + 1], down[step], b[2], b[3]);
        }
}

template <int DIM> __device__ void many(const struct cuda_attention &a) {
    extern __shared__ __align__(128) uint8_t room[]; /* q: [2][4 ROWS], keys, values [SPLIT] */
    enum { ROW_BYTES = DIM * 2, TILE = MANY_WARPS * ROWS, COLUMNS = DIM > 128 ? 32 : 64 };
    uint32_t at = (uint32_t)__cvta_generic_to_shared(room), low_at = at + TILE * ROW_BYTES;
    uint32_t keys_at = low_at + TILE * ROW_BYTES, values_at = keys_at + SPLIT * ROW_BYTES;
    uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    struct tile tile;
    /* Those that see most begin first. */
    if (!make_tile(a, gridDim.y - 1 - blockIdx.y, blockIdx.x, 0, &tile)) return;
    struct seen seen = seen_by_tile(a, tile);
    uint32_t rows = tile.tokens * tile.heads, base = seen.begin / SPLIT * SPLIT;
    struct pages pages = pages_in(a, tile, base, in_split(seen, base));
    ask_rows<DIM>(a.cache, pages, false, 0, SPLIT, in_split(seen, base), keys_at);
    close_group();
    ask_rows<DIM>(a.cache, pages, true, 0, SPLIT, in_split(seen, base), values_at);
    close_group();
    float undo[2];
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t r = warp * ROWS + i;
        size_t row = (size_t)(tile.row + r / tile.heads) * a.heads + tile.head + r % tile.heads;
        float by = put_query<DIM>(r < rows ? a.q + row * a.cache.k_dim : NULL, a.cache.k_dim, room,
                                  room + TILE * ROW_BYTES, r);
        if (i == g) undo[0] = by;
        if (i == g + 8) undo[1] = by;
    }
    __syncwarp();
    struct view v[2] = {view_of(a, tile, warp * ROWS + g, undo[0]),
                        view_of(a, tile, warp * ROWS + g + 8, undo[1])};

    float o[DIM / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, mass[2] = {0, 0};
    for (; base < seen.end; base += SPLIT) {
        wait_group<1>();
        __syncthreads();
        float s[BLOCKS][4], tops[2], shift[2], masses[GROUPS][2];
        score<DIM, BLOCKS>(at, low_at, warp * ROWS, keys_at, 0, a.cache.k_dim, s);
        __syncthreads();
        struct pages next = pages;
        struct seen then = in_split(seen, base + SPLIT);
        if (base + SPLIT < seen.end) {
            next = pages_in(a, tile, base + SPLIT, then);
            ask_rows<DIM>(a.cache, next, false, 0, SPLIT, then, keys_at);
        }
        close_group();
        finish_scores<BLOCKS>(a, v, pages, base, 0, s, tops);
        for (int r = 0; r < 2; r++) shift[r] = shift_of(tops[r]);
        uint32_t up[STEPS][4], down[STEPS][4];
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            weigh(s + 4 * i, shift, masses[i]);
#pragma unroll
            for (int j = 4 * i; j < 4 * i + 4; j++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    struct two p = pieces(s[j][2 * r], s[j][2 * r + 1]);
                    up[j / 2][j % 2 * 2 + r] = p.high;
                    down[j / 2][j % 2 * 2 + r] = p.low;
                }
        }
        struct share by[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float all = ((masses[0][r] + masses[1][r]) + masses[2][r]) + masses[3][r];
            by[r] = share_of(top[r], tops[r]);
            top[r] = fmaxf(top[r], tops[r]);
            mass[r] = join(mass[r], by[r], add_lanes(all));
        }
        wait_group<1>();
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DIM; d += COLUMNS) {
            if (d >= a.cache.v_dim) break;
            float more[COLUMNS / 8][4];
            sum_values<DIM, COLUMNS>(up, down, values_at, d, more);
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    o[d / 8 + n][i] = join(o[d / 8 + n][i], by[i / 2], more[n][i]);
        }
        __syncthreads();
        if (base + SPLIT < seen.end)
            ask_rows<DIM>(a.cache, next, true, 0, SPLIT, then, values_at);
        close_group();
        pages = next;
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        if (!v[r].there) continue;
        float scale, all = finish_mass(a, v[r].row, v[r].head, top[r], mass[r], &scale);
        float *y = a.y + ((size_t)v[r].row * a.heads + v[r].head) * a.cache.v_dim + 2 * t;
#pragma unroll
        for (int n = 0; n < DIM / 8; n++)
            if (8 * n < a.cache.v_dim)
                *(float2 *)(y + 8 * n) = make_float2(finish_sum(o[n][2 * r], scale, all),
                                                     finish_sum(o[n][2 * r + 1], scale, all));
    }
}

#define KERNELS(dim)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                         \
        attention_few_##dim(const __grid_constant__ struct cuda_attention a) {                    \
        few<dim>(a);                                                                              \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS, dim > 128 ? 1 : 2)                      \
        attention_many_##dim(const __grid_constant__ struct cuda_attention a) {                   \
        take_turn();                                                                              \
        many<dim>(a);                                                                             \
    }
KERNELS(64)
KERNELS(128)
KERNELS(256)

/* ---- all splits of a row and head ----
 * A split whose share is 0 changes nothing, and may not have been written. */

/* The largest of v of this thread and all before it. */
__device__ float largest_so_far(float v) {
    for (uint32_t back = 1; back < WARP; back *= 2) {
        float other = __shfl_up_sync(~0u, v, back);
        if (threadIdx.x % WARP >= back) v = fmaxf(v, other);
    }
    return v;
}

KERNEL_FN(attention_join, struct cuda_attention) {
    take_turn();
    enum { LOADS = 8, WIDEST = 256 };
    __shared__ struct share by[THREADS];
    __shared__ float mass[THREADS], tops[THREADS / WARP];
    uint32_t head = blockIdx.x, row = a.row0 + blockIdx.y, v_dim = a.cache.v_dim;
    uint32_t i = threadIdx.x, lane = i % WARP;
    size_t wide = 2 + v_dim;
    const float *parts = part_of(a, row, head, 0);
    float top = -INFINITY, sum = 0, out[WIDEST / THREADS] = {};
    for (uint32_t s0 = 0; s0 < a.splits; s0 += THREADS, parts += THREADS * wide) {
        uint32_t n = min(a.splits - s0, THREADS);
        float own = i < n ? parts[i * wide] : -INFINITY;
        float more = own > -INFINITY ? parts[i * wide + 1] : 0;
        float all = largest_so_far(own), before = __shfl_up_sync(~0u, all, 1);
        before = fmaxf(lane > 0 ? before : -INFINITY, top);
        __syncthreads();
        if (lane == WARP - 1) tops[i / WARP] = all;
        __syncthreads();
        for (uint32_t w = 0; w < i / WARP; w++) before = fmaxf(before, tops[w]);
        by[i] = share_of(before, own);
        mass[i] = more;
        __syncthreads();
        for (uint32_t w = 0; w < THREADS / WARP; w++) top = fmaxf(top, tops[w]);
        for (uint32_t s = 0; s < n; s++) sum = join(sum, by[s], mass[s]);
#pragma unroll
        for (int c = 0; c < WIDEST / THREADS; c++) {
            uint32_t d = c * THREADS + i;
            if (d >= v_dim) break;
            for (uint32_t s = 0; s < n; s += LOADS) {
                float v[LOADS];
#pragma unroll
                for (int k = 0; k < LOADS; k++) v[k] = parts[min(s + k, n - 1) * wide + 2 + d];
#pragma unroll
                for (int k = 0; k < LOADS; k++)
                    if (s + k < n && by[s + k].more != 0) out[c] = join(out[c], by[s + k], v[k]);
            }
        }
    }
    float scale, all = finish_mass(a, row, head, top, sum, &scale);
#pragma unroll
    for (int c = 0; c < WIDEST / THREADS; c++) {
        uint32_t d = c * THREADS + i;
        if (d < v_dim)
            a.y[((size_t)row * a.heads + head) * v_dim + d] = finish_sum(out[c], scale, all);
    }
}

/* The same of a few splits, by a block that has all heads of a row, and halves it. */
KERNEL_FN(attention_join_row, struct cuda_attention_row) {
    take_turn();
    __shared__ struct share by[JOIN_ROW_HEADS][JOIN_ROW_SPLITS];
    __shared__ float mass[JOIN_ROW_HEADS], scale[JOIN_ROW_HEADS], room[WARPS_MAX];
    const struct cuda_attention &at = a.attention;
    uint32_t row = at.row0 + blockIdx.x, v_dim = at.cache.v_dim;
    size_t wide = 2 + v_dim;
    for (uint32_t head = threadIdx.x; head < at.heads; head += blockDim.x) {
        const float *parts = part_of(at, row, head, 0);
        float top = -INFINITY, sum = 0, own[JOIN_ROW_SPLITS], more[JOIN_ROW_SPLITS];
#pragma unroll
        for (uint32_t s = 0; s < JOIN_ROW_SPLITS; s++) {
            own[s] = s < at.splits ? parts[s * wide] : -INFINITY;
            more[s] = s < at.splits ? parts[s * wide + 1] : 0;
        }
#pragma unroll
        for (uint32_t s = 0; s < JOIN_ROW_SPLITS; s++) {
            by[head][s] = share_of(top, own[s]);
            top = fmaxf(top, own[s]);
            sum = join(sum, by[head][s], own[s] > -INFINITY ? more[s] : 0);
        }
        mass[head] = finish_mass(at, row, head, top, sum, &scale[head]);
    }
    __syncthreads();
    float4 *y = (float4 *)(at.y + (size_t)row * at.heads * v_dim);
    struct row_peak peak = {0, true};
    for (uint32_t i = threadIdx.x; i < at.heads * v_dim / 4; i += blockDim.x) {
        uint32_t head = 4 * i / v_dim;
        const float *own = part_of(at, row, head, 0) + 2 + 4 * i % v_dim;
        float4 out = make_float4(0, 0, 0, 0);
        for (uint32_t s = 0; s < at.splits; s++) {
            struct share b = by[head][s];
            if (b.more == 0) continue;
            float2 v = *(const float2 *)(own + s * wide), w = *(const float2 *)(own + s * wide + 2);
            out = make_float4(join(out.x, b, v.x), join(out.y, b, v.y), join(out.z, b, w.x),
                              join(out.w, b, w.y));
        }
        float by_all = scale[head], all = mass[head];
        out = make_float4(finish_sum(out.x, by_all, all), finish_sum(out.y, by_all, all),
                          finish_sum(out.z, by_all, all), finish_sum(out.w, by_all, all));
        y[i] = out;
        add_peak(&peak, out);
    }
    halve_row(a.halve, y, row, peak, room);
}
