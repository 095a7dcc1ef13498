/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: face of graph/: what a model computes for one step, as a list of nodes in order. One
 * graph a model, whatever the batch: the number of rows is the step's. Built once by a recipe,
 * then immutable; it knows nothing of devices.
 *
 * Values are row-major float [rows, cols]; rows are the step's tokens, its wanted logit rows, its
 * sequences, or pairs of a token and an expert that it is routed to: grouped by expert in ascending
 * order, within an expert in order of the tokens. Weights are [out, in], row-major, in any format
 * of quant/.
 *
 * A batch is ragged: the tokens of each sequence are adjacent and in order of position. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/kinds.h"
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
    bool heads;                /* the matrices are those of heads: a token uses all */
    size_t row_bytes;
    float ternary;             /* not 0: -1, 0 and 1, whose products are multiplied by this; what
                                  they are multiplied with is rounded to 8 bits (round_act) */
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

enum rows { ROWS_TOKENS, ROWS_LOGITS, ROWS_SEQS, ROWS_EXPERTS };

struct value {
    uint32_t cols;
    enum rows rows;
    uint32_t used; /* ROWS_EXPERTS: experts, so rows, of each token */
    bool given;    /* of a part of a graph: made before it, put in by device_type.give; */
    bool kept;     /* read behind it: stays until the end, for device_type.output */
};
static inline size_t value_rows(const struct value *v, uint32_t tokens, uint32_t logits,
                                uint32_t seqs) {
    return v->rows == ROWS_LOGITS    ? logits
           : v->rows == ROWS_SEQS    ? seqs
           : v->rows == ROWS_EXPERTS ? (size_t)tokens * v->used
                                     : tokens;
}

/* ---- caches ---- */

enum { PAGE_TOKENS = 64 };   /* positions a page holds; splits of attention are multiples of it */
#define NO_PAGE UINT32_MAX

/* CACHE_CHUNK: positions are cut into chunks at multiples of `window`; a query sees its own. */
enum cache_kind { CACHE_FULL, CACHE_WINDOW, CACHE_CHUNK, CACHE_STATE };

/* One layer's cache. Layers of equal kind and sizes share a group, hence one page table; `slot` is
 * the layer's place inside each page of the group.
 *
 * A group of CACHE_STATE is not paged by position: one page of it, page[group][0], holds the state
 * of a sequence in all layers of the group, `state_floats` floats each, whatever its length and the
 * KV formats. A sequence without a past begins with zeros, whatever the page holds. */
struct cache {
    uint32_t group, slot;
    uint32_t node; /* that made it */
};
struct cache_group {
    enum cache_kind kind;
    uint32_t window;           /* most positions that a query sees, itself included; FULL: 0 */
    uint32_t every;            /* > 1: it has an entry for so many positions, which comes with the
                                  last of them; a page holds PAGE_TOKENS entries */
    uint32_t kv_heads, k_dim, v_dim;
    uint32_t state_floats;     /* CACHE_STATE: of one layer, a multiple of 16 */
    uint32_t layers;
};
/* Entries of so many positions. */
static inline uint32_t cache_entries(const struct cache_group *g, uint32_t positions) {
    return g->every > 1 ? positions / g->every : positions;
}

/* ---- nodes ---- */

enum { EXPERTS_USED_MAX = ROUTE_USED_MAX, MIX_MAX = 64 };

/* The experts of a token and their weights. Chosen are the `used` experts of the largest score +
 * bias, in descending order, equal ones by number. */
struct route_args {
    enum route_score score;
    uint32_t used;               /* experts of a token */
    struct weight *bias;         /* [experts], or of those to choose, added for choosing only;
                                    NULL = none */
    bool bias_to_logits;         /* it is added to the logits, not to the scores */
    bool has_chosen;             /* the token's experts are given: */
    value_id chosen;             /* [used], whose order stays */
    uint32_t groups;             /* of equally many experts; 0, 1 = none. Experts are chosen from */
    uint32_t groups_used;        /* the best so many groups */
    enum route_group group;
    bool group_zero;             /* experts of other groups are chosen by 0, else never */
    uint32_t always;             /* of the used: the last experts, not to choose: all tokens' */
    bool normalize;              /* weights are divided by their sum + normalize_eps */
    float normalize_eps;
    float scale;                 /* multiplies the weights; 0 = 1 */
    struct weight *expert_scale; /* [experts] multiplies an expert's weight; NULL = none */
    float jitter_eps;            /* ROUTE_SPARSEMIXER */
};

enum { NODE_INPUTS = 8, NODE_OUTPUTS = 4 };
enum position_factor { POSITION_STEPS, POSITION_LOG, POSITION_POWER };

/* Angles of a rotary embedding: (float)pos * freq. A sequence that was admitted for more than
 * `original` positions takes, if there is one, another set: freq_long, or (dynamic > 0, its length
 * n) base'^(-i / half) with base' = base * (dynamic * n / original - (dynamic - 1))^(half / (half -
 * 1)), which is NTK-aware scaling. */
struct rope_table_args {
    const float *freq;      /* [half] radians a position */
    float magnitude;        /* multiplies cos and sin */
    uint32_t half;          /* pairs rotated */
    uint32_t original;
    const float *freq_long; /* [half] or NULL */
    float magnitude_long;   /* that goes with it; 0: the same */
    uint32_t every;         /* > 1: a token has the angles of the last multiple of it */
    float dynamic, base;
    uint32_t back;          /* angles are those of the position so many before, or of 0 */
};

/* Rows of a table by hashes: of each order n of 2 .. `order`, a token and the n - 1 before it, and
 * of each of its `heads` heads h, order after order, row first[h] + hash % size[h]; hash is the XOR
 * over i < n of multiplier[i] * (the token i back), in 64 bits. At and before a token `end` that is
 * before the token's own, and before the sequence, all tokens are `end`. The arrays outlive the
 * graph. */
struct ngram_args {
    uint32_t order, heads;
    int32_t end;
    const uint64_t *multiplier;   /* [order] */
    const uint64_t *size, *first; /* [(order - 1) * heads] */
};
struct node {
    enum op op;
    int32_t layer;                       /* for messages; -1 outside the layers */
    uint32_t inputs, outputs;
    value_id in[NODE_INPUTS], out[NODE_OUTPUTS]; /* an input may be NO_VALUE where said below */
    struct weight *weight[NODE_OUTPUTS]; /* of linear and its kin one an output; others: [0];
                                            attention: the sinks; NULL = none */
    struct weight *bias[NODE_OUTPUTS];   /* vectors; NULL = none; of linear_experts one an expert;
                                            route: [0] its bias, [1] its scale of experts */
    union {
        struct { float scale; } embed;
        struct { uint32_t width; } dot;              /* in: a, b */
        struct {
            struct ngram_args args;
            uint32_t cache;
        } embed_ngrams;                              /* state: the last order - 1 tokens */
        struct {
            enum norm_kind kind;
            float eps;
            uint32_t width; /* elements normed together; divides cols; weight [width] or [cols] */
        } norm;
        struct { enum act_kind kind; } act;
        struct { enum act_kind act; } glu;         /* in: gate, up */
        struct glu_clamp glu_clamped;              /* in: gate, up */
        struct xielu xielu;
        struct { float low, high; } clamp;
        struct { uint32_t a_cols, b_cols, groups; } concat;
        struct { uint32_t groups, total, start, len; } slice;
        struct { uint32_t groups, width, times; } tile;
        struct { int32_t offset; } embed_position;
        struct {
            float beta, period;
            uint32_t offset;
            enum position_factor kind;
        } scale_position;
        struct { float value; } scale;
        struct { float cap; } softcap;
        struct { enum pool_kind kind; } pool;
        struct { float by; } sparsify;
        struct { float floor; } match_rms;
        struct { uint32_t from, to, width; } mix;  /* in: x [from * width], w [from * to] */
        struct { uint32_t n, rounds; float eps; } sinkhorn;
        struct rope_table_args rope_table; /* out: [tokens, 2 * half], cos then sin */
        struct {
            uint32_t heads, head_dim;    /* cols = heads * head_dim */
            uint32_t half;               /* the first 2 * half of each head are rotated */
            bool interleaved;            /* pairs (2i, 2i+1), else (i, i + half) */
        } rope;                          /* in: x, table; may be in place */
        struct {
            uint32_t heads, kv_heads, k_dim, v_dim;
            float scale;                 /* multiplies q . k */
            float softcap;               /* 0 = none; else s = cap * tanh(s / cap) */
            uint32_t window, chunk;      /* as attention_args */
            uint32_t cache;              /* index into graph.cache */
            bool bidirectional, shares, selects;
            const float *alibi, *offsets; /* [heads]; [heads][2 * reach + 1]; or NULL */
            const uint32_t *places;      /* [2 * reach + 1] or NULL */
            uint32_t reach;
            uint32_t selection, by_distance, by_key, sinks, beside; /* which input, 0 = none */
            uint32_t every, beside_cache; /* of what is beside */
            uint32_t selections;         /* lists in a row of the selection: 1 or kv_heads */
        } attention;                     /* in: q [heads*k_dim], unless it shares k and v, then of
                                            the last three what there is; out: [heads*v_dim] */
        struct {
            uint32_t heads, dim, used;
            uint32_t block, local;       /* block > 0: used blocks of positions for each head, */
            bool whole;                  /* or for all, of those that are complete */
            uint32_t every;              /* > 1: of each so many positions the last has a key */
            uint32_t cache;
        } index_select;                  /* in: q [heads*dim], k [dim] and, without blocks, weights
                                            [heads]; out: [used] positions in ascending order, then
                                            infinities; with blocks [heads * used * block], whole
                                            ones [(used + 1) * block - 1] */
        struct route_args route;         /* in: logits [experts], and the chosen where it has; out:
                                            [2 * used], the weights, then the experts' numbers as
                                            floats */
        struct { uint32_t first; } route_rest; /* in: route */
        struct {
            uint32_t kernel, step, cache; /* state: the last (kernel - 1) * step rows of x, oldest
                                             first */
        } conv1d;                        /* weight[0]: w; bias[0] */
        struct { uint32_t cache; } rglru; /* in: x, log decay; state: the last row */
        struct { uint32_t cache; } token_shift; /* state: the last row */
        struct {
            uint32_t every, cache;       /* state: as kernels.h */
            bool overlaps;
        } compress;                      /* in: kv, gate; weight[0]: the gates' bias */
        struct {
            uint32_t heads, k_heads, k_dim, v_dim;
            bool delta, k_tiled;
            bool decay_each;             /* decay has a column for each element of k */
            float scale;
            const float *fixed_decay;    /* [heads], where decay is NO_VALUE */
            uint32_t cache;              /* state: [heads][k_dim][v_dim] */
        } delta;                         /* in: q, k, v, decay or NO_VALUE, beta or NO_VALUE;
                                            bias[0]: skip */
        struct {
            uint32_t heads, k_dim, v_dim, cache; /* state: a head after the other, as kernels.h */
            float scale, eps;
        } mlstm;                         /* in: q, k, v, gate, log_decay */
        struct {
            uint32_t heads, n, cache;    /* state: [n][cols] */
        } scan;                          /* in: x, dt, b, c; weight[0]: a; bias[0]: d */
        struct { uint32_t cache; } wkv4; /* in: k, v; weight[0]: decay; bias[0]: first; state: sum,
                                            sum of weights, maximum, [cols] each */
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
    value_id logits;                     /* ROWS_LOGITS: [vocab], or an encoder's last states */
    value_id embedding, pooled;          /* ROWS_SEQS: what a sequence is embedded as; what a head
                                            of the model says about it; NO_VALUE: none */
    bool whole;                          /* a sequence is one step: a token sees later ones, or
                                            its rows are pooled */
    int32_t layer;                       /* stamped on new nodes */
    bool failed;                         /* out of memory while building */
};

/* ---- building (all sizes are checked by the recipe before; a mismatch here is our bug) ---- */

void graph_init(struct graph *g, struct arena *arena);
/* A token that a table smaller than the vocabulary lacks has its first row. */
value_id graph_embed(struct graph *g, struct weight *w, float scale);
/* Rows of a learned position table: that of each token's position + offset, which the recipe keeps
 * within the table. */
value_id graph_embed_position(struct graph *g, struct weight *w, int32_t offset);
/* w [rows, cols], or a table of equal parts, its matrices; y [(order - 1) * heads * cols]. Makes a
 * cache of its own. */
value_id graph_embed_ngrams(struct graph *g, struct weight *w, const struct ngram_args *args);
/* w and bias [width], or [cols]: then each run of width has its own. */
value_id graph_norm(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                    enum norm_kind kind, float eps, uint32_t width);
/* n weights of equal cols that share x; bias may be NULL or hold NULLs; ternary weights have none,
 * and come with the ops that they need. */
void graph_linear(struct graph *g, value_id x, uint32_t n, struct weight *const *w,
                  struct weight *const *bias, value_id *out);
value_id graph_linear1(struct graph *g, value_id x, struct weight *w, struct weight *bias);
/* w has a matrix for each head: x are heads * cols columns, y heads * rows. */
value_id graph_linear_heads(struct graph *g, value_id x, struct weight *w);
value_id graph_act(struct graph *g, value_id x, enum act_kind act);
/* A narrower gate, whose columns divide up's: each value is that of so many neighbours of up. */
value_id graph_glu(struct graph *g, value_id gate, value_id up, enum act_kind act);
value_id graph_glu_clamped(struct graph *g, value_id gate, value_id up,
                           const struct glu_clamp *clamp);
value_id graph_xielu(struct graph *g, value_id x, const struct xielu *args);
value_id graph_add(struct graph *g, value_id a, value_id b);
/* b may be narrower, as the gate above. */
value_id graph_mul(struct graph *g, value_id a, value_id b);
/* y = x * w + bias, vectors of cols, or the first row of a matrix; either may be NULL. */
value_id graph_affine(struct graph *g, value_id x, struct weight *w, struct weight *bias);
value_id graph_clamp(struct graph *g, value_id x, float low, float high);
value_id graph_scale(struct graph *g, value_id x, float s);
/* y = x * (1 + beta * log(1 + floor((pos + offset) / period))) (Llama 4's attention temperature) */
value_id graph_scale_position(struct graph *g, value_id x, float beta, uint32_t offset,
                              float period);
/* y = x * (1 + beta * log(max((pos + offset) / period, 1))) */
value_id graph_log_position(struct graph *g, value_id x, float beta, uint32_t offset,
                            float period);
/* y = x * (1 + (pos + offset) / period)^exponent, exponent in -8 to 8 */
value_id graph_power_position(struct graph *g, value_id x, float exponent, uint32_t offset,
                              float period);
/* Rows of `groups` times a_cols of a, then b_cols of b. a has groups * a_cols columns, or a_cols,
 * the same in all groups; b likewise. */
value_id graph_concat(struct graph *g, value_id a, uint32_t a_cols, value_id b, uint32_t b_cols,
                      uint32_t groups);
/* Columns [start, start + len) of each of the groups of `total`. */
value_id graph_slice(struct graph *g, value_id x, uint32_t groups, uint32_t total, uint32_t start,
                     uint32_t len);
/* Each of the groups of `width` columns `times` times, one after the other. */
value_id graph_tile(struct graph *g, value_id x, uint32_t groups, uint32_t width, uint32_t times);
value_id graph_softcap(struct graph *g, value_id x, float cap);
/* y = max(x - (mean + by * deviation), 0), both of the whole row (Gemma 3n's sparse activations) */
value_id graph_sparsify(struct graph *g, value_id x, float by);
/* y[i] = the sum of a * b over the i-th run of `width` columns */
value_id graph_dot(struct graph *g, value_id a, value_id b, uint32_t width);
/* y = a * sqrt(mean(b^2)) / sqrt(max(mean(a^2), floor)) */
value_id graph_match_rms(struct graph *g, value_id a, value_id b, float floor);
/* Groups of `width` columns: group k of y is the sum over j of w[j * to + k] times group j of x. */
value_id graph_mix(struct graph *g, value_id x, value_id w, uint32_t width);
/* Each row a matrix [n][n]: the softmax of its rows, + eps, whose columns and rows are then in turn
 * divided by their sums + eps, the columns `rounds` times, the rows between (arXiv 1306.0895). */
value_id graph_sinkhorn(struct graph *g, value_id x, uint32_t n, uint32_t rounds, float eps);
/* Codes round(x / step), whole numbers up to 127, and the row's step [1]: max(|x|) / 127 (BitNet).
 * Products of whole numbers and ternary weights are exact also where a device multiplies halves of
 * floats, so that the next rounding finds the same values on every device. */
value_id graph_round_act(struct graph *g, value_id x, value_id *step);
value_id graph_rope_table(struct graph *g, const struct rope_table_args *args);
value_id graph_rope(struct graph *g, value_id x, value_id table, uint32_t heads, uint32_t head_dim,
                    bool interleaved);
/* Does the length that a sequence is admitted for change a rope table's angles? */
bool graph_depends_on_length(const struct graph *g);
/* Zero and NULL are "none". The score of a key is cap * tanh(scale * q . k / cap), to which
 * slope * (pos_k - pos_q) is added.
 *     window          a query sees keys with 0 <= pos_q - pos_k < window; bidirectional: with
 *                     |pos_q - pos_k| <= window / 2, rounded down
 *     chunk           keys with pos_k / chunk == pos_q / chunk; without these two
 *     bidirectional   later keys too, of a sequence whose tokens are all in this step
 *     sinks           F32 [heads]: a logit more in each head's softmax, which has no value
 *     token_sinks     the same, a column for each head
 *     by_distance     [heads * distances], the token's: that of pos_q - pos_k is added to a score,
 *                     0 where the distance is larger
 *     places          [2 * reach + 1], in the graph's arena, with by_distance of `spans` columns a
 *                     head: places[reach + pos_q - pos_k] says which of them is added; by_key, if
 *                     there is one, has the same of the key's token, which is added, too
 *     alibi           [heads] slopes, in the graph's arena (models/blocks/alibi.h)
 *     offsets         [heads][2 * reach + 1], likewise: [reach + pos_q - pos_k] is added to a
 *                     score, 0 where the distance is larger than `reach`; without these two
 *     shares          k and v are NO_VALUE: nothing is stored; shared_cache, an earlier node's, is
 *                     read. kv_heads, k_dim and v_dim are that node's; its keys must still be
 *                     there: window and chunk are that node's, or it has neither, or the window is
 *                     a smaller one
 *     selects         of the keys above, those in the token's row of `selection`, an index_select's
 *                     value; at least one of them. Of a block_select's each KV head has its own
 *     beside          [kv_heads * k_dim], k_dim = v_dim: further keys, and the values of the same
 *                     numbers, in a cache of their own: the rows of positions every - 1,
 *                     2 * every - 1, ... up to the query's own, whatever the window. What selects
 *                     then selects of these alone, by their numbers, and may select none */
struct attention_args {
    uint32_t heads, kv_heads, k_dim, v_dim, window, chunk, every;
    float scale, softcap;
    bool bidirectional, shares, selects, has_token_sinks, has_by_distance, has_beside;
    uint32_t shared_cache;     /* as graph_attention_cache() gives it */
    value_id selection, token_sinks, by_distance, beside;
    struct weight *sinks;
    const float *alibi, *offsets;
    const uint32_t *places;
    uint32_t reach;
    bool has_by_key;
    value_id by_key;
};
/* Makes the layer's cache too, unless it shares one: of a window or a chunk, or full. */
value_id graph_attention(struct graph *g, value_id q, value_id k, value_id v,
                         const struct attention_args *args);
/* How many positions learned tables have rows for; UINT32_MAX without one. */
uint32_t graph_positions(const struct graph *g);
/* The cache of the attention node whose output is `out`. */
uint32_t graph_attention_cache(const struct graph *g, value_id out);
/* The `used` positions up to each token's own with the largest sum over heads of
 * weights[head] * max(q[head] . k, 0), all while there are fewer; of equal ones the earliest. Makes
 * a cache for k, whose V has no features. every > 1: of the keys of positions every - 1,
 * 2 * every - 1, ... alone, by their numbers. */
value_id graph_index_select(struct graph *g, value_id q, value_id weights, value_id k,
                            uint32_t used, uint32_t every);
/* For each head, of q alone, the positions up to the token's own in the `used` blocks of `block`
 * positions with the largest of their q[head] . k; the last `local` blocks are always among them.
 * block divides SELECT_BLOCKS, local is at most `used`. */
enum { SELECT_BLOCKS = 512 };
value_id graph_block_select(struct graph *g, value_id q, value_id k, uint32_t block, uint32_t used,
                            uint32_t local);
/* Positions for all heads: those in the `used` complete blocks up to the token's own position with
 * the largest sum over heads of max(q[head] . k, 0), k the last position's of a block; and those
 * after the last complete block. block divides SELECT_BLOCKS. */
value_id graph_whole_select(struct graph *g, value_id q, value_id k, uint32_t block, uint32_t used);
value_id graph_gather_rows(struct graph *g, value_id x);
/* Token rows to one row a sequence of the step, whose tokens are all in it (whole). */
value_id graph_pool(struct graph *g, value_id x, enum pool_kind kind);
/* Mixture of experts. What takes a route follows it before the next route: a device groups the
 * pairs of one at a time. linear_experts: x are token rows, each multiplied with the matrices of
 * the token's experts, or pairs; bias may be NULL or hold NULLs, else weights of experts with one
 * row, the expert's vector. A route may have more experts than w: the pairs of those without a
 * matrix are 0. combine: the sum of each token's pairs by weight, in the order of the route.
 * route_rest: one column, the sum of the weights of those experts of a token that are numbered
 * from `first` (which experts without a matrix multiply the token's own row by). */
enum route_fault { ROUTE_FITS, ROUTE_FAULT_EXPERTS, ROUTE_FAULT_USED, ROUTE_FAULT_GROUPS };
/* What of the numbers no route of so many experts can have; graph_route takes no such ones. */
enum route_fault graph_route_fault(const struct route_args *args, uint32_t experts);
value_id graph_route(struct graph *g, value_id logits, const struct route_args *args);
void graph_linear_experts(struct graph *g, value_id x, value_id route, uint32_t n,
                          struct weight *const *w, struct weight *const *bias, value_id *out);
value_id graph_route_rest(struct graph *g, value_id route, uint32_t first);
value_id graph_combine(struct graph *g, value_id x, value_id route);
/* Pairs as token rows of used * cols, in the order of the route, and back: for what is done to
 * pairs other than their product (a weight on an expert's input, attention by an expert). */
value_id graph_join_pairs(struct graph *g, value_id x, value_id route);
value_id graph_split_pairs(struct graph *g, value_id x, value_id route);

/* ---- recurrent layers: ops with a state that each token of a sequence changes, in order ----
 * Inputs and outputs are token rows. Each makes a cache of its own. Weights are in any format of
 * single elements, best F32. */

/* y[t][c] = bias[c] + sum over j of w[c][j] * x[t - kernel + 1 + j][c], with zeros before the
 * sequence; w [cols of x, kernel]; bias may be NULL. No activation. */
value_id graph_conv1d(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                      uint32_t kernel);
/* The same over every step-th token: x[t - (kernel - 1 - j) * step]. */
value_id graph_conv1d_apart(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                            uint32_t kernel, uint32_t step);
/* y[t] = a * y[t - 1] + sqrt(1 - a^2) * x[t] with a = exp(log_decay[t]) <= 1; y[0] = x[0]. */
value_id graph_rglru(struct graph *g, value_id x, value_id log_decay);
/* y[t] = x[t - 1], zeros at 0. */
value_id graph_token_shift(struct graph *g, value_id x);
/* Positions are cut into blocks at multiples of `every`. y[t] is the mean of kv over the token's
 * block up to its own row, each column weighted by exp(gate + bias), bias [every, cols] by the
 * position in the block: whole in the block's last row. overlaps: the second half of the columns is
 * taken so, together with the first half over all of the block before (DeepSeek-V4). */
value_id graph_compress(struct graph *g, value_id kv, value_id gate, struct weight *bias,
                        uint32_t every, bool overlaps);

/* For each head a matrix S [k_dim][v_dim] that begins as zeros; for each token
 *     S = diag(a) S
 *     S = S + k (x) (beta * (v - S^T k))      delta
 *     S = S + k (x) (beta * v)                else
 *     y = scale * S^T q + skip * v
 * q and k [k_heads * k_dim], v and y [heads * v_dim], beta [heads], or NO_VALUE: 1. The decay a is
 * a multiplier, not its logarithm: a column for each head, or for each head and element of k, or
 * NO_VALUE with fixed_decay[heads], which outlives the graph. skip: a vector [heads], or NULL: 0.
 * Head h reads k head h / (heads / k_heads); k_tiled: h % k_heads.
 *
 *                              q  k  v  decay                beta        delta  scale
 *   gated delta net            q, k each NORM_L2; v          sigmoid(b)  yes    k_dim^-0.5
 *                              exp(-exp(A_log) * softplus(a + dt_bias))
 *     (qwen3_next, qwen3_5, olmo_hybrid: beta * 2 where allow_neg_eigval. llama.cpp's converters
 *     write the v heads of qwen3_5 tiled)
 *   Kimi delta attention       the same, the decay [heads * k_dim] (kimi_linear, bailing_hybrid)
 *   lightning attention        q, k, v; fixed exp(-slope)    -           no     1   (minimax)
 *   Mamba-2                    C  B  x  exp(dt * A)          dt          no     1   skip = D
 *     (k_heads: groups; also bamba, falcon_h1, granitemoehybrid, nemotron_h, zamba2) */
struct delta_args {
    value_id q, k, v, decay, beta;
    uint32_t heads, k_heads, k_dim, v_dim;
    bool delta, k_tiled;
    const float *fixed_decay;
    float scale;
    struct weight *skip;
};
value_id graph_delta(struct graph *g, const struct delta_args *args);

/* xLSTM's matrix memory. For each head S [k_dim][v_dim], n [k_dim] and m, zeros at the start; for
 * each token, with the gates held back by exp(m), m being the largest exponent so far,
 *     m' = max(log_decay + m, gate); f = exp(log_decay + m - m'); i = exp(gate - m'); m = m'
 *     S = f S + k (x) (i * v); n = f n + i * k
 *     y = scale * S^T q / (max(|scale * n . q|, exp(-m)) + eps)
 * q and k [heads * k_dim], v and y [heads * v_dim], gate and log_decay [heads]: the input gate
 * before its exponential (soft-capped where the family does that), and log(sigmoid(forget gate)),
 * which is -softplus(-forget gate). */
struct mlstm_args {
    value_id q, k, v, gate, log_decay;
    uint32_t heads, k_dim, v_dim;
    float scale, eps;
};
value_id graph_mlstm(struct graph *g, const struct mlstm_args *args);

/* Mamba's selective scan: for each column c of x and i < n, in order of the tokens,
 *     h[c][i] = exp(dt[c] * A[c][i]) * h[c][i] + dt[c] * B[i] * x[c]
 *     y[c] = sum over i of C[i] * h[c][i], + D[c] * x[c]
 * x and dt (softplus'ed already) [cols]; B and C [heads * n]: columns are cut into `heads` equal
 * runs, each with its own (zamba; others have 1, or 0 for it). a [cols, n] is negative already:
 * -exp(A_log); d a vector [cols] or NULL. */
struct scan_args {
    value_id x, dt, b, c;
    struct weight *a, *d;
    uint32_t heads;
};
value_id graph_scan(struct graph *g, const struct scan_args *args);

/* RWKV-4: y[t] = sum over s <= t of weight * v[s] / sum of weight, in each column, where weight is
 * exp(first + k[t]) for s = t, else exp(k[s] - (t - 1 - s) * exp(decay)). decay and first are
 * vectors as the files have them (time_decay, time_first): the op takes -exp(decay) itself. */
value_id graph_wkv4(struct graph *g, value_id k, value_id v, struct weight *decay,
                    struct weight *first);

/* ---- parts (part.c): layers on several devices ---- */

/* The first node of that layer; of one past the last: the first behind all layers. */
uint32_t graph_layer_start(const struct graph *g, int32_t layer);
/* Can nodes before `at` run on one device, the rest on another? No layer may share the cache of one
 * on the other side, and what is handed on has a row a token. */
bool graph_may_cut(const struct graph *g, uint32_t at);
/* Nodes [from, to), with the values of the whole, of which some are `given` or `kept`, and all its
 * groups, which hold these nodes' layers alone. Weights are shared; `g` outlives it. */
bool graph_part(const struct graph *g, uint32_t from, uint32_t to, struct arena *arena,
                struct graph *out);

/* ---- memory plan (plan.c) ---- */

/* Where each value lives in one scratch block, from its first to its last use. */
struct graph_plan {
    size_t *offset; /* [values], multiples of 64 */
    size_t bytes;   /* of the whole block */
};
/* For at most `tokens` token rows, and as many sequences, and `logits` logit rows; NULL offset when
 * out of memory. */
struct graph_plan graph_plan_make(const struct graph *g, struct arena *arena, uint32_t tokens,
                                  uint32_t logits);

/* ---- one step ---- */

struct step_seq {
    uint32_t first, count;           /* its rows in the batch */
    uint32_t past;                   /* its positions already in the cache: row i is past + i */
    uint32_t length;                 /* positions it was admitted for (rope_table_args) */
    const uint32_t *const *page;     /* [groups]: page numbers, one for each 64 positions;
                                        NO_PAGE where a window has passed; one for a state */
};

struct step {
    uint32_t tokens, seqs, logits;
    const int32_t *id;               /* [tokens] */
    const uint32_t *pos;             /* [tokens] */
    const uint32_t *row;             /* [logits] token rows whose logits are wanted, ascending */
    const struct step_seq *seq;      /* [seqs] */
};

#endif
