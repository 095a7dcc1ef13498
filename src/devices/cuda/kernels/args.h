/* SPDX-License-Identifier: Apache-2.0
 *
 * args.h: the one argument of each kernel, as host C fills it and CUDA C reads it: equal bytes.
 * DEV(type) is an address on the GPU. Rows are float, contiguous. */
#ifndef DEVICES_CUDA_KERNELS_ARGS_H
#define DEVICES_CUDA_KERNELS_ARGS_H

#include <stdint.h>

#ifdef __CUDACC__
#define DEV(type) type *
#else
#define DEV(type) uint64_t
#endif

/* A sequence of the step: graph.h's step_seq, its pages at [group] of the step's page tables. */
struct cuda_seq {
    uint32_t first, count, past, length;
};

/* What a kernel needs to know of the step; one copy on the GPU, written before it. */
struct cuda_step {
    uint32_t tokens, seqs, logits;
    DEV(const int32_t) id;
    DEV(const uint32_t) pos;
    DEV(const uint32_t) row;
    DEV(const uint32_t) seq_of;      /* [tokens] */
    DEV(const struct cuda_seq) seq;
    DEV(const uint32_t) page;        /* all page tables one after the other */
    DEV(const uint32_t) page_at;     /* [groups * seqs] where the table of [group][seq] begins */
};

/* A matrix, or those of experts, as they lie in the file. */
struct cuda_matrix {
    DEV(const uint8_t) data;
    uint64_t row_bytes, matrix_bytes;
    uint32_t rows, cols, quant, matrices;
};

/* Where a sequence keeps the state of a node. */
struct cuda_state {
    DEV(uint8_t) layer;                /* page 0's state of the node */
    uint64_t page_bytes;
    uint32_t group;
};

/* ---- element by element: y[i] of a[i / a_run] and b[i / b_run] ---- */
enum cuda_map_kind {
    MAP_ACT, MAP_ADD, MAP_AFFINE, MAP_CLAMP, MAP_GLU, MAP_GLU_CLAMPED, MAP_MUL, MAP_SCALE,
    MAP_SOFTCAP, MAP_XIELU
};
struct cuda_map {
    DEV(const float) a;
    DEV(const float) b;
    DEV(const float) c;
    DEV(float) y;
    uint64_t n;
    uint32_t kind, act, a_run, b_run, cols;
    float f[4];
};

/* ---- a row, or a run of one, by a block ---- */
struct cuda_halve {                    /* rows for products; see halves.cuh */
    DEV(const float) x;
    DEV(void) y;
    DEV(float) scale;                  /* [tokens] */
    uint32_t cols, x_stride;
};
enum cuda_row_kind {
    ROW_DOT, ROW_L2, ROW_L2_SUM, ROW_LAYER, ROW_MATCH_RMS, ROW_RMS, ROW_ROUND, ROW_SPARSIFY
};
struct cuda_rows {
    DEV(const float) x;
    DEV(const float) other;
    DEV(const float) w;
    DEV(const float) b;
    DEV(float) y;
    DEV(float) step; /* of ROW_ROUND, one a run */
    uint32_t kind, runs, width, cols;  /* runs: blocks; a row has cols / width of them */
    uint32_t w_cols, b_cols;
    float f;
};
/* RMS or layer norm of whole rows, w and b as wide as these. */
struct cuda_norm_row {
    DEV(const float) x;                /* or, where sum is not 0, the first of two that are added */
    DEV(const float) plus;             /* the second; 0: it is not there */
    DEV(float) sum;
    DEV(const float) route;            /* of x that are rows of pairs, to be combined; 0: none */
    DEV(const uint32_t) pair;
    DEV(const float) w;
    DEV(const float) b;
    DEV(float) y;
    uint32_t cols, used, layer;
    float eps;
    struct cuda_halve halve;           /* of y, where its y is not 0 */
};
struct cuda_glu_row {
    DEV(const float) gate;
    DEV(const float) up;
    DEV(float) y;
    uint32_t act;
    struct cuda_halve halve;           /* of y */
};

/* ---- columns moved ---- */
enum cuda_move_kind { MOVE_CONCAT, MOVE_SLICE, MOVE_TILE, MOVE_GATHER, MOVE_JOIN, MOVE_SPLIT };
struct cuda_move {
    DEV(const float) a;
    DEV(const float) b;
    DEV(const uint32_t) index;
    DEV(float) y;
    uint64_t n;                        /* elements of y, of split: of a */
    uint32_t kind, cols, a_cols, b_cols, a_once, b_once, groups, total, start, len, times, used;
};

struct cuda_embed {
    struct cuda_matrix w;
    DEV(const int32_t) id;             /* NULL: positions + offset */
    DEV(const uint32_t) pos;
    DEV(float) y;
    uint32_t tokens;
    int32_t offset;
    float scale;
};

struct cuda_ngrams {
    struct cuda_matrix w;              /* its matrices are parts of the table */
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const uint64_t) multiplier;    /* [order] */
    DEV(const uint64_t) size;          /* [(order - 1) * heads] */
    DEV(const uint64_t) first;
    DEV(float) y;
    uint32_t order, heads;
    int32_t end;
};

struct cuda_rope_table {
    DEV(const struct cuda_step) step;
    DEV(const float) freq;
    DEV(const float) freq_long;        /* 0: none */
    DEV(float) y;
    uint32_t half, original, every, back;
    float magnitude, magnitude_long, dynamic, base;
};

struct cuda_rope {
    DEV(const float) x;
    DEV(const float) table;
    DEV(float) y;
    uint64_t n;                        /* tokens * heads * head_dim */
    uint32_t heads, head_dim, half, interleaved;
};

struct cuda_scale_position {
    DEV(const float) x;
    DEV(const uint32_t) pos;
    DEV(float) y;
    uint64_t n;
    uint32_t cols, kind, offset;
    float beta, period;
};

struct cuda_mix {
    DEV(const float) x;
    DEV(const float) w;
    DEV(float) y;
    uint64_t n;
    uint32_t from, to, width;
};

struct cuda_sinkhorn {
    DEV(const float) x;
    DEV(float) y;
    uint32_t rows, n, rounds;
    float eps;
};

struct cuda_pool {
    DEV(const float) x;
    DEV(float) y;
    DEV(const struct cuda_seq) seq;
    uint32_t kind, cols;
};

/* ---- products ----
 * y[t][r] = sum over k of x[t][k] * w[r][k] + bias[r]. Experts: of pair p, whose expert is
 * expert[p] and whose row of x is p, or token[p] where that is given. Heads: matrix h takes columns
 * h * cols .. of a row of x to columns h * rows .. of y. */
struct cuda_linear {
    struct cuda_matrix w;
    DEV(const float) x;
    DEV(const float) bias;             /* [rows], of experts [experts][rows] */
    DEV(const uint32_t) expert;
    DEV(const uint32_t) token;
    DEV(float) y;
    uint32_t tokens, x_stride, y_stride;
};

/* The same on tensor cores, for the integer formats, of halved rows; see mma.cu. */
struct cuda_mma_weight {
    DEV(const uint8_t) data;
    DEV(const float) bias;
    DEV(const float) add;              /* as y, which it may be: added at the end; NULL: none */
    DEV(float) y;                      /* [tokens][rows] */
    uint64_t row_bytes;
    uint32_t rows, blocks;             /* blocks of rows of the kernel */
    float by, undo;                    /* the power of two of the weights, and one over it */
};
struct cuda_mma {                      /* weights of one format that share x */
    struct cuda_mma_weight weight[4];
    DEV(const void) x;
    DEV(const float) scale;
    uint32_t weights, cols, tokens;
};
/* Of pairs, as cuda_group has them: row p of x, or row token[p] where that is given. Experts from
 * `matrices` on have no matrix: 0. */
struct cuda_mma_expert {
    DEV(const uint8_t) data;
    DEV(const float) by;               /* [matrices] as above */
    DEV(const float) bias;             /* [matrices][rows] */
    DEV(float) y;                      /* [pairs][rows] */
    uint64_t row_bytes, matrix_bytes;
    uint32_t rows, blocks, matrices;
};
struct cuda_mma_experts {
    struct cuda_mma_expert weight[4];
    DEV(const void) x;
    DEV(const float) scale;
    DEV(const uint32_t) token;
    DEV(const struct cuda_tile) tile;
    DEV(const uint32_t) tiles;
    uint32_t weights, cols, stack;     /* stack: of 16 rows, of a block of few tokens */
};
struct cuda_pack {
    DEV(const uint8_t) from;
    DEV(uint8_t) to;
    uint64_t from_bytes, to_bytes;     /* of a row */
    uint32_t rows, blocks, quant;
};
struct cuda_peak {
    struct cuda_matrix w;
    DEV(uint32_t) out;                 /* [matrices] */
};

struct cuda_route {
    DEV(const float) logits;
    DEV(const float) chosen;
    DEV(const float) bias;
    DEV(const float) expert_scale;
    DEV(float) y;
    DEV(float) scratch;                /* [tokens][2 * experts] */
    uint32_t tokens, experts, used, always, score, group, groups, groups_used;
    uint32_t bias_to_logits, group_zero, normalize;
    float normalize_eps, scale, jitter_eps;
};
/* Pairs of one expert that a block multiplies: `count` from `first` on. */
struct cuda_tile {
    uint32_t expert, first, count, unused;
};
/* token and expert [pairs], pair [tokens * used], as experts_group() has them; tile [*tiles]: each
 * expert's pairs by `height`. So many warps count, each a run of pairs. */
enum { GROUP_LISTED = 4096 /* pairs whose experts are kept in shared memory */ };
struct cuda_group {
    DEV(const float) route;
    DEV(uint32_t) token;
    DEV(uint32_t) expert;
    DEV(uint32_t) pair;
    DEV(struct cuda_tile) tile;
    DEV(uint32_t) tiles;
    uint32_t tokens, experts, used, height, warps;
};
struct cuda_route_group {
    struct cuda_route route;
    struct cuda_group group;
};
struct cuda_combine {
    DEV(const float) x;
    DEV(const float) route;
    DEV(const uint32_t) pair;
    DEV(float) y;
    uint64_t n;
    uint32_t cols, used, first;        /* first: of route_rest */
};

/* ---- attention ----
 * One node's cache: of page p of a KV head the keys [64], then the values [64], each position a row
 * of its format. */
struct cuda_cache {
    DEV(uint8_t) layer;                /* page 0's block of KV head 0 */
    uint64_t page_bytes, block_bytes, v_at;
    uint32_t group, kv_heads, k_dim, v_dim, k_type, v_type, k_bytes, v_bytes;
    uint32_t every;                    /* the last of so many positions has an entry; 1: each */
};
struct cuda_store {
    struct cuda_cache cache;
    DEV(const struct cuda_step) step;
    DEV(const float) k;
    DEV(const float) v;
};
/* What comes before attention: q is turned, k is turned and stored, v is stored. */
enum { ROPE_STORE_MAX = 512 /* largest head */, ROPE_NORM_MAX = 256 /* that has a norm */ };
struct cuda_rope_store {
    struct cuda_rope q, k;             /* k.y: 0 */
    struct cuda_rows norm[2];          /* of the heads of q and k; its x 0: none */
    struct cuda_store store;           /* its k: 0 */
};
/* Part of a row, head and split: at [(row - row0) * heads + head][split] the maximum, the sum and
 * the v_dim sums. Splits from `own` on are of the cache beside. */
struct cuda_attention {
    struct cuda_cache cache, beside;
    DEV(const struct cuda_step) step;
    DEV(const float) q;
    DEV(const float) selected;
    DEV(const float) sinks;
    DEV(const float) token_sinks;
    DEV(const float) alibi;
    DEV(const float) offsets;
    DEV(const float) by_distance;
    DEV(const float) by_key;
    DEV(const uint32_t) places;
    DEV(float) parts;
    DEV(float) y;
    uint32_t row0, rows, splits, own, heads, window, chunk, bidirectional;
    uint32_t share, tile_heads, tile_tokens, seq_tiles; /* heads of a KV head; of a block; blocks of
                                                           a sequence */
    uint32_t choice, choices, reach, distances;
    float scale, softcap;
};
/* Few splits of few heads, added by a block a row, which then has the row halved. */
enum { JOIN_ROW_SPLITS = 8, JOIN_ROW_HEADS = 128 };
struct cuda_attention_row {
    struct cuda_attention attention;
    struct cuda_halve halve;           /* of its y */
};

/* Choosing what to attend to: the scores of a token's entries, of each list, at
 * [(row - row0) * lists + list][entries]; then the `used` largest as positions, ascending. */
enum cuda_index_kind { INDEX_ENTRIES, INDEX_BLOCKS, INDEX_WHOLE };
struct cuda_index {
    struct cuda_cache cache;
    DEV(const struct cuda_step) step;
    DEV(const float) q;
    DEV(const float) weights;          /* [tokens][heads], of INDEX_ENTRIES */
    DEV(float) scores;
    DEV(float) y;
    uint32_t row0, rows, entries, kind, heads, dim, used, block, local, lists, cols;
};

/* ---- recurrent layers ---- */
struct cuda_conv1d {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) x;
    DEV(const float) w;                /* [kernel][cols] */
    DEV(const float) bias;
    DEV(float) y;
    uint32_t cols, kernel, apart;
};
struct cuda_delta {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) q;
    DEV(const float) k;
    DEV(const float) v;
    DEV(const float) decay;
    DEV(const float) beta;
    DEV(const float) skip;
    DEV(float) y;
    uint32_t heads, k_heads, k_dim, v_dim, delta, k_tiled, decay_each, decay_fixed;
    float scale;
};
struct cuda_mlstm {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) q;
    DEV(const float) k;
    DEV(const float) v;
    DEV(const float) gate;
    DEV(const float) log_decay;
    DEV(float) y;
    uint32_t heads, k_dim, v_dim;
    float scale, eps;
};
struct cuda_compress {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) kv;
    DEV(const float) gate;
    DEV(const float) bias;             /* [every][cols, twice if they overlap] */
    DEV(float) y;
    uint32_t cols, every, overlaps;
};
struct cuda_scan {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) x;
    DEV(const float) dt;
    DEV(const float) b;
    DEV(const float) c;
    DEV(const float) a;                /* [n][cols] */
    DEV(const float) d;
    DEV(float) y;
    uint32_t cols, n, heads;
};
/* Columns that do not meet: rglru (a: x, b: log decay), token_shift (a: x), wkv4 (a: k, b: v). */
enum cuda_column_kind { COLUMN_RGLRU, COLUMN_SHIFT, COLUMN_WKV4 };
struct cuda_column {
    struct cuda_state state;
    DEV(const struct cuda_step) step;
    DEV(const float) a;
    DEV(const float) b;
    DEV(const float) decay;
    DEV(const float) first;
    DEV(float) y;
    uint32_t cols, kind;
};

#endif
