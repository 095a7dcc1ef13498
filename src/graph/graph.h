/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: face of graph/: what a model computes for one step, as a list of nodes in order. One
 * graph a model, whatever the batch: the number of rows is the step's. Built once by a recipe,
 * then immutable; it knows nothing of devices.
 *
 * Values are row-major float [rows, cols]; rows are the step's tokens, its wanted logit rows, or
 * pairs of a token and an expert that it is routed to: grouped by expert in ascending order, within
 * an expert in order of the tokens. Weights are [out, in], row-major, in any format of quant/.
 *
 * A batch is ragged: the tokens of each sequence are adjacent and in order of position. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"
#include "quant/quant.h"

enum op {
#define OP(name, text) OP_##name,
#include "graph/ops.def"
#undef OP
    OP_COUNT
};
const char *op_name(enum op op);

/* ---- weights and values ---- */

/* A tensor of the model in its canonical form (what llama.cpp's converters write). One matrix, or
 * one for each expert, which may lie anywhere. */
struct weight {
    const char *name;          /* as in the file, for messages */
    const struct quant *quant;
    uint32_t rows, cols;       /* [out, in] of one matrix; a vector has rows = 1 */
    uint32_t experts;          /* matrices; 0: not of experts */
    size_t row_bytes;
    const void *data;          /* mapped or owned by the model's arena; may be unaligned */
    const void *const *expert; /* [experts] the same for each expert; then data is NULL */
    void *bound;               /* the device's own form, set by bind_weight; NULL = data as it is */
};
static inline uint64_t weight_matrix_bytes(const struct weight *w) {
    return (uint64_t)w->rows * w->row_bytes;
}
static inline uint64_t weight_bytes(const struct weight *w) {
    return weight_matrix_bytes(w) * (w->experts ? w->experts : 1);
}

typedef uint32_t value_id;
#define NO_VALUE UINT32_MAX

enum rows { ROWS_TOKENS, ROWS_LOGITS, ROWS_EXPERTS };

struct value {
    uint32_t cols;
    enum rows rows;
    uint32_t used; /* ROWS_EXPERTS: experts, so rows, of each token */
};
static inline size_t value_rows(const struct value *v, uint32_t tokens, uint32_t logits) {
    return v->rows == ROWS_LOGITS    ? logits
           : v->rows == ROWS_EXPERTS ? (size_t)tokens * v->used
                                     : tokens;
}

/* ---- caches ---- */

enum { PAGE_TOKENS = 64 };   /* positions a page holds; splits of attention are multiples of it */
#define NO_PAGE UINT32_MAX

enum cache_kind { CACHE_FULL, CACHE_WINDOW };

/* One attention layer's cache. Layers of equal kind, window and row size share a group, hence one
 * page table; `slot` is the layer's place inside each page of the group. */
struct cache {
    uint32_t group, slot;
};
struct cache_group {
    enum cache_kind kind;
    uint32_t window;           /* CACHE_WINDOW: positions a query sees, itself included */
    uint32_t kv_heads, k_dim, v_dim;
    uint32_t layers;
};

/* ---- nodes ---- */

enum norm_kind { NORM_RMS, NORM_LAYER };
enum act_kind { ACT_SILU, ACT_GELU_TANH, ACT_GELU_ERF, ACT_RELU };
/* Weights of the experts a token is routed to: softmax over the logits of all experts, or over
 * those of the chosen ones (which is the former made to sum to 1). */
enum route_kind { ROUTE_SOFTMAX, ROUTE_SOFTMAX_CHOSEN };
enum { EXPERTS_USED_MAX = 64 };

enum { NODE_INPUTS = 3, NODE_OUTPUTS = 4 };

struct node {
    enum op op;
    int32_t layer;                       /* for messages; -1 outside the layers */
    uint32_t inputs, outputs;
    value_id in[NODE_INPUTS], out[NODE_OUTPUTS];
    struct weight *weight[NODE_OUTPUTS]; /* linear, linear_experts: one an output; norm, embed: [0];
                                            NULL = none */
    struct weight *bias[NODE_OUTPUTS];   /* F32 vectors; NULL = none */
    union {
        struct { float scale; } embed;
        struct {
            enum norm_kind kind;
            float eps;
            uint32_t width; /* elements normed together; divides cols; weight [width] */
        } norm;
        struct { enum act_kind act; } glu;         /* in: gate, up */
        struct { float value; } scale;
        struct { float cap; } softcap;
        struct {
            const float *freq;           /* [half] radians a position; angle = (float)pos * freq */
            float magnitude;             /* multiplies cos and sin */
            uint32_t half;               /* pairs rotated */
        } rope_table;                    /* out: [tokens, 2 * half], cos then sin */
        struct {
            uint32_t heads, head_dim;    /* cols = heads * head_dim */
            uint32_t half;               /* the first 2 * half of each head are rotated */
            bool interleaved;            /* pairs (2i, 2i+1), else (i, i + half) */
        } rope;                          /* in: x, table; may be in place */
        struct {
            uint32_t heads, kv_heads, k_dim, v_dim;
            float scale;                 /* multiplies q . k */
            float softcap;               /* 0 = none; else s = cap * tanh(s / cap) */
            uint32_t window;             /* 0 = all; else keys with pos_q - pos_k < window */
            uint32_t cache;              /* index into graph.cache */
        } attention;                     /* in: q [heads*k_dim], k, v; out: [heads*v_dim] */
        struct {
            enum route_kind kind;
            uint32_t used;               /* experts of a token, in descending order of logit */
        } route;                         /* in: logits [experts]; out: [2 * used], the weights, then
                                            the experts' numbers as floats */
    } u;
};

struct graph {
    struct arena *arena;
    struct node *node;
    uint32_t nodes, node_cap;
    struct value *value;
    uint32_t values, value_cap;
    struct cache *cache;
    uint32_t caches, cache_cap;
    struct cache_group *group;
    uint32_t groups, group_cap;
    value_id logits;                     /* ROWS_LOGITS, [vocab] */
    int32_t layer;                       /* stamped on new nodes */
    bool failed;                         /* out of memory while building */
};

/* ---- building (all sizes are checked by the recipe before; a mismatch here is our bug) ---- */

void graph_init(struct graph *g, struct arena *arena);
value_id graph_embed(struct graph *g, struct weight *w, float scale);
value_id graph_norm(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                    enum norm_kind kind, float eps, uint32_t width);
/* n weights of equal cols that share x; bias may be NULL or hold NULLs. */
void graph_linear(struct graph *g, value_id x, uint32_t n, struct weight *const *w,
                  struct weight *const *bias, value_id *out);
value_id graph_linear1(struct graph *g, value_id x, struct weight *w, struct weight *bias);
value_id graph_glu(struct graph *g, value_id gate, value_id up, enum act_kind act);
value_id graph_add(struct graph *g, value_id a, value_id b);
value_id graph_scale(struct graph *g, value_id x, float s);
value_id graph_softcap(struct graph *g, value_id x, float cap);
value_id graph_rope_table(struct graph *g, const float *freq, uint32_t half, float magnitude);
value_id graph_rope(struct graph *g, value_id x, value_id table, uint32_t heads, uint32_t head_dim,
                    bool interleaved);
struct attention_args {
    uint32_t heads, kv_heads, k_dim, v_dim, window;
    float scale, softcap;
};
/* Makes the layer's cache too (window > 0: a window cache). */
value_id graph_attention(struct graph *g, value_id q, value_id k, value_id v,
                         const struct attention_args *args);
value_id graph_gather_rows(struct graph *g, value_id x);
/* Mixture of experts. What takes a route follows it before the next route: a device groups the
 * pairs of one at a time. linear_experts: x are token rows, each multiplied with the matrices of
 * the token's experts, or pairs. combine: the sum of each token's pairs by weight, in the order of
 * the route. */
value_id graph_route(struct graph *g, value_id logits, enum route_kind kind, uint32_t used);
void graph_linear_experts(struct graph *g, value_id x, value_id route, uint32_t n,
                          struct weight *const *w, value_id *out);
value_id graph_combine(struct graph *g, value_id x, value_id route);

/* ---- memory plan (plan.c) ---- */

/* Where each value lives in one scratch block, from its first to its last use. */
struct graph_plan {
    size_t *offset; /* [values], multiples of 64 */
    size_t bytes;   /* of the whole block */
};
/* For at most `tokens` token rows and `logits` logit rows; NULL offset when out of memory. */
struct graph_plan graph_plan_make(const struct graph *g, struct arena *arena, uint32_t tokens,
                                  uint32_t logits);

/* ---- one step ---- */

struct step_seq {
    uint32_t first, count;           /* its rows in the batch */
    uint32_t past;                   /* its positions already in the cache: row i is past + i */
    const uint32_t *const *page;     /* [groups]: page numbers, one for each 64 positions;
                                        NO_PAGE where a window has passed */
};

struct step {
    uint32_t tokens, seqs, logits;
    const int32_t *id;               /* [tokens] */
    const uint32_t *pos;             /* [tokens] */
    const uint32_t *row;             /* [logits] token rows whose logits are wanted, ascending */
    const struct step_seq *seq;      /* [seqs] */
};

#endif
