/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.cuh: what a query sees, and the rows that a block of attention's kernels has. */
#ifndef DEVICES_CUDA_KERNELS_ATTENTION_CUH
#define DEVICES_CUDA_KERNELS_ATTENTION_CUH

#include "devices/cuda/kernels/cache.cuh"

struct seen { uint32_t begin, end; };

/* The positions that the query at pos sees. */
__device__ inline struct seen seen_from(const struct cuda_attention &a, const struct cuda_seq &seq,
                                        uint32_t pos) {
    struct seen s = {0, pos + 1};
    if (a.chunk > 0) s.begin = pos - pos % a.chunk;
    else if (a.window > 0) {
        uint32_t back = a.bidirectional ? a.window / 2 : a.window - 1;
        s.begin = pos > back ? pos - back : 0;
    }
    if (!a.bidirectional) return s;
    uint32_t end = seq.past + seq.count;
    s.end = a.window > 0 && end - pos > a.window / 2 ? pos + a.window / 2 + 1 : end;
    return s;
}

__device__ inline float *part_of(const struct cuda_attention &a, uint32_t row, uint32_t head,
                                 uint32_t split) {
    size_t at = ((size_t)(row - a.row0) * a.heads + head) * a.splits + split;
    return a.parts + at * (2 + a.cache.v_dim);
}

/* The rows of a block: `tokens` tokens from row `row` on, of one sequence, times `heads` heads from
 * `head` on, of one KV head; row r is token r / heads. */
struct tile {
    struct cuda_seq seq;
    uint32_t in, row, tokens, head, heads, kv_head;
    uint32_t base; /* of the split */
    bool beside;
};

/* Tile x of those of the sequences, part y of the heads, in split z. */
__device__ inline bool make_tile(const struct cuda_attention &a, uint32_t x, uint32_t y, uint32_t z,
                                 struct tile *t) {
    uint32_t parts = (a.share + a.tile_heads - 1) / a.tile_heads, part = y % parts;
    t->kv_head = y / parts;
    t->head = t->kv_head * a.share + part * a.tile_heads;
    t->heads = min(a.share - part * a.tile_heads, a.tile_heads);
    t->in = x / a.seq_tiles;
    t->seq = a.step->seq[t->in];
    t->beside = z >= a.own;
    t->base = (t->beside ? z - a.own : z) * SPLIT;
    /* Of the launch's rows alone. */
    uint32_t from = t->seq.first + x % a.seq_tiles * a.tile_tokens;
    uint32_t end = min(t->seq.first + t->seq.count, a.row0 + a.rows);
    end = min(end, from + a.tile_tokens);
    t->row = max(from, a.row0);
    t->tokens = end - t->row;
    return t->row < end;
}

__device__ inline struct seen seen_in_split(const struct cuda_attention &a, const struct tile &t,
                                            uint32_t token) {
    uint32_t pos = a.step->pos[t.row + token];
    struct seen s = {0, (pos + 1) / max(a.beside.every, 1)};
    if (!t.beside) s = seen_from(a, t.seq, pos);
    s.begin = min(max(s.begin, t.base), t.base + SPLIT) - t.base;
    s.end = min(max(s.end, t.base), t.base + SPLIT) - t.base;
    return s;
}

__device__ inline float sink_of(const struct cuda_attention &a, uint32_t row, uint32_t head,
                                int i) {
    if (i == 0) return a.sinks ? a.sinks[head] : -INFINITY;
    return a.token_sinks ? a.token_sinks[(size_t)row * a.heads + head] : -INFINITY;
}

#endif
