/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.cu: storing keys and values, and attention over them. Positions are cut into splits of
 * SPLIT at absolute multiples; a split is reduced from zero, and the parts are added in order of
 * the split, each weighted by exp(its maximum - that of all). A block reduces one split for a tile of rows (tokens and heads) that share a KV head:
 *     score   a thread a position: one fused multiply-add a feature, in order
 *     sum     a warp a row: lane l has positions l, l + 32, ... in order, then a butterfly
 *     out     a thread a column: one fused multiply-add a position, in order
 * so a row's bits depend on its own positions alone, not on the tile.
 */
#include "devices/cuda/kernels/attention.cuh"
#include "devices/cuda/kernels/norm.cuh"
#include "devices/cuda/kernels/rope.cuh"

/* Where KV head h of token t is stored; NULL: the cache has no entry of its position. */
struct place { uint8_t *block; uint32_t slot; };

__device__ struct place place_of(const struct cuda_store &a, uint32_t t, uint32_t h) {
    const struct cuda_cache &c = a.cache;
    uint32_t pos = a.step->pos[t], entry = pos / c.every;
    if ((pos + 1) % c.every != 0) return {NULL, 0};
    return {block_of(c, a.step, a.step->seq_of[t], entry / PAGE, h), entry % PAGE};
}
__device__ void store_key(const struct cuda_cache &c, const struct place &to, const float *k) {
    put_row(to.block + to.slot * c.k_bytes, c.k_type, k, c.k_dim, true);
}
__device__ void store_value(const struct cuda_cache &c, const struct place &to, const float *v) {
    put_row(to.block + c.v_at + to.slot * c.v_bytes, c.v_type, v, c.v_dim, false);
}

KERNEL_FN(attention_store, struct cuda_store) {
    take_turn();
    uint32_t t = blockIdx.x, h = blockIdx.y;
    const struct cuda_cache &c = a.cache;
    struct place to = place_of(a, t, h);
    if (!to.block) return;
    size_t row = (size_t)t * c.kv_heads + h;
    store_key(c, to, a.k + row * c.k_dim);
    if (c.v_dim) store_value(c, to, a.v + row * c.v_dim);
}

/* A block a head of a token: those of q, then those of k, then those of v. It has the threads that a
 * norm of so wide a head has by itself. */
KERNEL_FN(rope_store, struct cuda_rope_store) {
    take_turn();
    __shared__ float turned[ROPE_STORE_MAX], normed[ROPE_NORM_MAX], room[WARPS_MAX];
    const struct cuda_cache &c = a.store.cache;
    uint32_t t = blockIdx.x, h = blockIdx.y;
    bool query = h < a.q.heads, key = !query && h < a.q.heads + c.kv_heads;
    if (!query) h -= key ? a.q.heads : a.q.heads + c.kv_heads;
    if (query || key) {
        const struct cuda_rope &r = query ? a.q : a.k;
        const struct cuda_rows &norm = a.norm[query ? 0 : 1];
        size_t row = (size_t)t * r.heads + h;
        const float *table = r.table + (size_t)t * 2 * r.half, *x = r.x + row * r.head_dim;
        if (norm.x) {
            size_t at = row * r.head_dim;
            float scale = rms_scale(norm, norm.x + at, room);
            write_norm(norm, norm.x + at, at, 0, scale, normed);
            x = normed;
            __syncthreads();
        }
        for (uint32_t p = threadIdx.x; p < rope_pairs(r); p += blockDim.x)
            turn_pair(r, x, table, p,
                      query ? r.y + row * r.head_dim : turned);
    }
    if (query) return;
    __syncthreads();
    struct place to = place_of(a.store, t, h);
    if (!to.block) return;
    if (key) store_key(c, to, turned);
    else store_value(c, to, a.store.v + ((size_t)t * c.kv_heads + h) * c.v_dim);
}

/* ---- one split ---- */

/* A score and what is added to it; key_row: the key's row in the step, of by_key. */
__device__ float biased(const struct cuda_attention &a, float s, uint32_t row, uint32_t head,
                        uint32_t pos, uint32_t key, uint32_t key_row) {
    int64_t away = (int64_t)pos - key, at = away;
    if (a.alibi) s = fmaf(a.alibi[head], (float)-away, s);
    const float *by = NULL;
    if (a.by_distance) by = a.by_distance + ((size_t)row * a.heads + head) * a.distances;
    if (a.places) {
        uint32_t place = a.places[a.reach + away];
        float more = by ? by[place] : 0;
        if (a.by_key) more += a.by_key[((size_t)key_row * a.heads + head) * a.distances + place];
        return s + more;
    }
    if (a.offsets) {
        by = a.offsets + (size_t)head * a.distances;
        at += a.reach;
    }
    return by && at >= 0 && at < a.distances ? s + by[at] : s;
}

/* A bit for each position of the split that a token has chosen. */
__device__ void mark_selected(const struct cuda_attention &a, const struct tile &t, uint32_t token,
                              uint32_t sees[SPLIT / 32]) {
    size_t list = (size_t)(t.row + token) * a.choices + (a.choices > 1 ? t.kv_head : 0);
    for (uint32_t i = threadIdx.x; i < a.choice; i += blockDim.x) {
        float key = a.selected[list * a.choice + i];
        if (!(key >= (float)t.base && key < (float)(t.base + SPLIT))) continue;
        uint32_t at = (uint32_t)key - t.base;
        atomicOr(&sees[at / 32], 1u << at % 32);
    }
}

/* Four features from d on, a multiple of 4. */
__device__ float4 get4(const uint8_t *row, uint32_t type, uint32_t d) {
    if (type == KV_f16) {
        uint2 v = *(const uint2 *)(row + 2 * d);
        float2 x = __half22float2(*(__half2 *)&v.x), y = __half22float2(*(__half2 *)&v.y);
        return make_float4(x.x, x.y, y.x, y.y);
    }
    if (type == KV_f32) return *(const float4 *)(row + 4 * d);
    return make_float4(get(row, type, d), get(row, type, d + 1), get(row, type, d + 2),
                       get(row, type, d + 3));
}

/* Scores of the rows with one key, which a thread has. */
template <int ROWS>
__device__ void score_key(const float *q, const uint8_t *k, uint32_t type, uint32_t dim,
                          float s[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) s[r] = 0;
    uint32_t d = 0;
    /* Many loads at once: a thread waits for memory once for all of them. */
    enum { LOADS = 4, EACH = 8 };
    for (; type == KV_f16 && d < dim && dim % (LOADS * EACH) == 0; d += LOADS * EACH) {
        uint4 raw[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) raw[i] = *(const uint4 *)(k + 2 * (d + EACH * i));
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const __half2 *h = (const __half2 *)&raw[i];
            float2 v[EACH / 2];
#pragma unroll
            for (int j = 0; j < EACH / 2; j++) v[j] = __half22float2(h[j]);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 *x = (const float4 *)(q + r * dim + d + EACH * i);
                float4 a = x[0], b = x[1];
                s[r] = fmaf(a.w, v[1].y, fmaf(a.z, v[1].x, fmaf(a.y, v[0].y, fmaf(a.x, v[0].x, s[r]))));
                s[r] = fmaf(b.w, v[3].y, fmaf(b.z, v[3].x, fmaf(b.y, v[2].y, fmaf(b.x, v[2].x, s[r]))));
            }
        }
    }
    for (; d + 4 <= dim && dim % 4 == 0; d += 4) {
        float4 v = get4(k, type, d);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float4 x = *(const float4 *)(q + r * dim + d);
            s[r] = fmaf(x.w, v.w, fmaf(x.z, v.z, fmaf(x.y, v.y, fmaf(x.x, v.x, s[r]))));
        }
    }
    for (; d < dim; d++) {
        float v = get(k, type, d);
#pragma unroll
        for (int r = 0; r < ROWS; r++) s[r] = fmaf(q[r * dim + d], v, s[r]);
    }
}

/* Values weighted by the scores, of the rows first, first + step, ...; a thread has a column. */
template <int ROWS>
__device__ void sum_values(const struct cuda_attention &a, const struct tile &t,
                           const struct cuda_cache &c, const float *score, uint32_t d,
                           uint32_t first, uint32_t step, uint32_t begin, uint32_t end,
                           float out[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) out[r] = 0;
    /* As in score_key(). */
    enum { LOADS = 16 };
    for (uint32_t at = begin; at < end;) {
        uint32_t stop = min((at / PAGE + 1) * PAGE, end);
        const uint8_t *block = block_of(c, a.step, t.in, (t.base + at) / PAGE, t.kv_head);
        while (block && at < stop) {
            const uint8_t *row = block + c.v_at + (t.base + at) % PAGE * c.v_bytes;
            if (c.v_type == KV_f16 && at % 4 == 0 && at + LOADS <= stop) {
                float v[LOADS];
#pragma unroll
                for (int i = 0; i < LOADS; i++)
                    v[i] = __half2float(((const __half *)(row + (size_t)i * c.v_bytes))[d]);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const float4 *by = (const float4 *)(score + (first + r * step) * SPLIT + at);
#pragma unroll
                    for (int i = 0; i < LOADS / 4; i++) {
                        float4 p = by[i];
                        out[r] = fmaf(p.x, v[4 * i], out[r]);
                        out[r] = fmaf(p.y, v[4 * i + 1], out[r]);
                        out[r] = fmaf(p.z, v[4 * i + 2], out[r]);
                        out[r] = fmaf(p.w, v[4 * i + 3], out[r]);
                    }
                }
                at += LOADS;
                continue;
            }
            float v = get(row, c.v_type, d);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                out[r] = fmaf(score[(first + r * step) * SPLIT + at], v, out[r]);
            at++;
        }
        at = stop;
    }
}

/* shared: q [ROWS][k_dim], scores [ROWS][SPLIT] */
template <int ROWS> __device__ void split_of(const struct cuda_attention &a) {
    extern __shared__ float4 shared[];
    __shared__ uint32_t sees[ROWS][SPLIT / 32];
    __shared__ struct seen seen[ROWS]; /* of each token */
    struct tile t;
    if (!make_tile(a, blockIdx.x, blockIdx.y, blockIdx.z, &t)) return;
    const struct cuda_cache &c = t.beside ? a.beside : a.cache;
    float *q = (float *)shared, *score = q + (ROWS * c.k_dim + 3) / 4 * 4;
    uint32_t rows = t.tokens * t.heads;
    bool chooses = a.selected && t.beside == (a.beside.every > 0);
    bool biases = !t.beside && (a.alibi || a.offsets || a.places || a.by_distance);

    for (uint32_t i = threadIdx.x; i < ROWS * c.k_dim; i += blockDim.x) {
        uint32_t r = i / c.k_dim, row = t.row + r / t.heads, head = t.head + r % t.heads;
        q[i] = r < rows ? a.q[((size_t)row * a.heads + head) * c.k_dim + i % c.k_dim] : 0;
    }
    for (uint32_t i = threadIdx.x; i < ROWS * (SPLIT / 32); i += blockDim.x)
        sees[i / (SPLIT / 32)][i % (SPLIT / 32)] = chooses ? 0 : ~0u;
    if (threadIdx.x < t.tokens) seen[threadIdx.x] = seen_in_split(a, t, threadIdx.x);
    __syncthreads();
    if (is_quantized(c.k_type)) turn_queries(q, ROWS * c.k_dim);
    for (uint32_t i = 0; chooses && i < t.tokens; i++) mark_selected(a, t, i, sees[i]);
    /* What any of the tokens sees: neither end falls from token to token. */
    uint32_t begin = seen[0].begin, end = seen[t.tokens - 1].end;
    __syncthreads();

    for (uint32_t at = begin + threadIdx.x; at < end; at += blockDim.x) {
        uint32_t key = t.base + at;
        const uint8_t *block = block_of(c, a.step, t.in, key / PAGE, t.kv_head);
        float s[ROWS];
        if (block) score_key<ROWS>(q, block + key % PAGE * c.k_bytes, c.k_type, c.k_dim, s);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= rows) break;
            uint32_t token = r / t.heads;
            float v = -INFINITY;
            if (block && at >= seen[token].begin && at < seen[token].end &&
                sees[token][at / 32] >> at % 32 & 1) {
                v = s[r] * a.scale;
                if (a.softcap > 0) v = a.softcap * tanhf(v / a.softcap);
                if (biases)
                    v = biased(a, v, t.row + token, t.head + r % t.heads,
                               a.step->pos[t.row + token], key, t.seq.first + key - t.seq.past);
            }
            score[r * SPLIT + at] = v;
        }
    }
    __syncthreads();

    uint32_t lane = threadIdx.x % WARP;
    uint32_t first = begin / WARP * WARP + lane; /* what is before begin would add 0 */
    first = first < begin ? first + WARP : first;
    for (uint32_t r = threadIdx.x / WARP; r < ROWS; r += blockDim.x / WARP) {
        float top = -INFINITY, sum = 0;
        if (r >= rows) { /* its values are summed with the others' */
            for (uint32_t at = first; at < end; at += WARP) score[r * SPLIT + at] = 0;
            continue;
        }
        for (uint32_t at = first; at < end; at += WARP) top = fmaxf(top, score[r * SPLIT + at]);
        top = warp_max(top);
        for (uint32_t at = first; at < end; at += WARP) {
            float p = top == -INFINITY ? 0 : expf(score[r * SPLIT + at] - top);
            score[r * SPLIT + at] = p;
            sum += p;
        }
        sum = warp_sum(sum);
        if (lane > 0) continue;
        float *part = part_of(a, t.row + r / t.heads, t.head + r % t.heads, blockIdx.z);
        part[0] = top;
        part[1] = sum;
    }
    __syncthreads();

    /* Threads are columns; where there are more threads, they share the rows. */
    const uint32_t groups = c.v_dim <= blockDim.x / 2 ? 2 : 1;
    uint32_t group = threadIdx.x / (blockDim.x / groups), wide = blockDim.x / groups;
    for (uint32_t d = threadIdx.x % wide; d < c.v_dim; d += wide) {
        float out[ROWS];
        if (groups == 2) sum_values<ROWS / 2>(a, t, c, score, d, group, 2, begin, end, out);
        else sum_values<ROWS>(a, t, c, score, d, 0, 1, begin, end, out);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            uint32_t r = group + i * groups;
            if (i < ROWS / groups && r < rows)
                part_of(a, t.row + r / t.heads, t.head + r % t.heads, blockIdx.z)[2 + d] = out[i];
        }
    }
}

KERNEL_FN(attention_split_2, struct cuda_attention) {
    take_turn();
    split_of<2>(a);
}
KERNEL_FN(attention_split_8, struct cuda_attention) {
    take_turn();
    split_of<8>(a);
}
KERNEL_FN(attention_split_16, struct cuda_attention) {
    take_turn();
    split_of<16>(a);
}

/* ---- all splits of a row and head ---- */

/* Splits that nothing was seen in count for nothing, however many there are. */
KERNEL_FN(attention_merge, struct cuda_attention) {
    take_turn();
    enum { SOME = 256, LOADS = 8 };
    __shared__ float room[WARPS_MAX], weight[SOME], mass[SOME];
    uint32_t head = blockIdx.x, row = a.row0 + blockIdx.y, v_dim = a.cache.v_dim;
    size_t wide = 2 + v_dim;
    const float *parts = part_of(a, row, head, 0);
    float top = -INFINITY, sum = 0;
    for (uint32_t s = threadIdx.x; s < a.splits; s += blockDim.x) top = fmaxf(top, parts[s * wide]);
    top = block_max(top, room);
    for (int i = 0; i < 2; i++) top = fmaxf(top, sink_of(a, row, head, i));
    for (uint32_t d0 = 0; d0 < v_dim; d0 += blockDim.x) {
        uint32_t d = d0 + threadIdx.x, column = d < v_dim ? d : 0;
        float out = 0;
        for (uint32_t s0 = 0; s0 < a.splits; s0 += SOME) {
            uint32_t n = min(a.splits - s0, SOME);
            __syncthreads();
            for (uint32_t s = threadIdx.x; s < n; s += blockDim.x) {
                const float *part = parts + (s0 + s) * wide;
                bool none = part[0] == -INFINITY;
                weight[s] = none ? -1 : expf(part[0] - top);
                mass[s] = none ? 0 : part[1] * weight[s];
            }
            __syncthreads();
            const float *own = parts + s0 * wide + 2 + column;
            for (uint32_t s = 0; s < n; s += LOADS) {
                float v[LOADS];
#pragma unroll
                for (uint32_t i = 0; i < LOADS; i++) v[i] = own[min(s + i, n - 1) * wide];
#pragma unroll
                for (uint32_t i = 0; i < LOADS; i++)
                    if (s + i < n && !(weight[s + i] < 0)) out = fmaf(v[i], weight[s + i], out);
            }
            for (uint32_t s = 0; s < n && d0 == 0; s++) sum += mass[s];
        }
        for (int i = 0; i < 2 && d0 == 0; i++) {
            float sink = sink_of(a, row, head, i);
            if (sink != -INFINITY) sum += expf(sink - top);
        }
        if (d < v_dim) a.y[((size_t)row * a.heads + head) * v_dim + d] = out / sum;
    }
}
