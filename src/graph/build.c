/* SPDX-License-Identifier: Apache-2.0
 * build.c: appends nodes and values to a graph; see graph.h. */
#include <assert.h>
#include <string.h>

#include "graph/graph.h"

const char *op_name(enum op op) {
    static const char *const name[] = {
#define OP(name, text) #name,
#include "graph/ops.def"
#undef OP
    };
    return name[op];
}

void graph_init(struct graph *g, struct arena *arena) {
    *g = (struct graph){.arena = arena,
                        .logits = NO_VALUE,
                        .embedding = NO_VALUE,
                        .pooled = NO_VALUE,
                        .layer = -1};
}

/* Room for one more element in a list of the graph's arena; the old one stays there unused. */
static bool grow(struct graph *g, void *list, uint32_t count, uint32_t *cap, size_t size) {
    if (g->failed) return false;
    if (count < *cap) return true;
    uint32_t more = *cap ? *cap * 2 : 64;
    void *p = arena_array(g->arena, more, size), *old;
    if (!p) return !(g->failed = true);
    memcpy(&old, list, sizeof old);
    if (count) memcpy(p, old, count * size);
    memcpy(list, &p, sizeof p);
    *cap = more;
    return true;
}

static value_id new_value(struct graph *g, struct value value) {
    if (!grow(g, &g->value, g->values, &g->value_cap, sizeof *g->value)) return 0;
    g->value[g->values] = value;
    return g->values++;
}

/* Sink for writes after an allocation failed: the graph is thrown away then. */
static struct node *new_node(struct graph *g, enum op op, uint32_t inputs, const value_id *in) {
    static _Thread_local struct node lost;
    struct node *n = &lost;
    if (grow(g, &g->node, g->nodes, &g->node_cap, sizeof *g->node)) n = &g->node[g->nodes++];
    *n = (struct node){.op = op, .layer = g->layer, .inputs = inputs};
    if (inputs) memcpy(n->in, in, inputs * sizeof *in);
    return n;
}

static value_id output(struct graph *g, struct node *n, uint32_t cols, enum rows rows) {
    return n->out[n->outputs++] = new_value(g, (struct value){.cols = cols, .rows = rows});
}

/* Shape of a value; a dummy once the graph has failed. */
static struct value shape(const struct graph *g, value_id v) {
    if (g->failed) return (struct value){.cols = 1};
    assert(v < g->values);
    return g->value[v];
}

/* A node with outputs shaped like its first input. */
static value_id like(struct graph *g, struct node *n, value_id x) {
    return n->out[n->outputs++] = new_value(g, shape(g, x));
}

value_id graph_embed(struct graph *g, struct weight *w, float scale) {
    struct node *n = new_node(g, OP_embed, 0, NULL);
    n->weight[0] = w;
    n->u.embed.scale = scale;
    return output(g, n, w->cols, ROWS_TOKENS);
}

value_id graph_embed_position(struct graph *g, struct weight *w, int32_t offset) {
    struct node *n = new_node(g, OP_embed_position, 0, NULL);
    n->weight[0] = w;
    n->u.embed_position.offset = offset;
    return output(g, n, w->cols, ROWS_TOKENS);
}

static bool fits_norm(const struct weight *w, uint32_t width, uint32_t cols) {
    return !w || w->cols == width || w->cols == cols;
}

value_id graph_norm(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                    enum norm_kind kind, float eps, uint32_t width) {
    uint32_t cols = shape(g, x).cols;
    assert(g->failed || (cols % width == 0 && fits_norm(w, width, cols) &&
                         fits_norm(bias, width, cols)));
    struct node *n = new_node(g, OP_norm, 1, &x);
    n->weight[0] = w;
    n->bias[0] = bias;
    n->u.norm.kind = kind;
    n->u.norm.eps = eps;
    n->u.norm.width = width;
    return like(g, n, x);
}

static void linear(struct graph *g, value_id x, uint32_t count, struct weight *const *w,
                   struct weight *const *bias, value_id *out) {
    struct value s = shape(g, x);
    struct node *n = new_node(g, OP_linear, 1, &x);
    for (uint32_t i = 0; i < count; i++) {
        assert(g->failed || w[i]->cols == s.cols);
        n->weight[i] = w[i];
        n->bias[i] = bias ? bias[i] : NULL;
        out[i] = output(g, n, w[i]->rows, s.rows);
    }
}

void graph_linear(struct graph *g, value_id x, uint32_t count, struct weight *const *w,
                  struct weight *const *bias, value_id *out) {
    assert(count >= 1 && count <= NODE_OUTPUTS);
    bool ternary = false;
    for (uint32_t i = 0; i < count; i++) ternary |= w[i]->ternary != 0;
    if (!ternary) {
        linear(g, x, count, w, bias, out);
        return;
    }
    value_id step, codes = graph_round_act(g, x, &step);
    for (uint32_t i = 0; i < count; i++) {
        bool rounded = w[i]->ternary != 0;
        linear(g, rounded ? codes : x, 1, w + i, bias ? bias + i : NULL, out + i);
        if (rounded) out[i] = graph_mul(g, out[i], graph_scale(g, step, w[i]->ternary));
    }
}

value_id graph_linear1(struct graph *g, value_id x, struct weight *w, struct weight *bias) {
    value_id out;
    graph_linear(g, x, 1, &w, &bias, &out);
    return out;
}

value_id graph_linear_heads(struct graph *g, value_id x, struct weight *w) {
    assert(g->failed || (w->heads && shape(g, x).cols == w->experts * w->cols));
    struct node *n = new_node(g, OP_linear_heads, 1, &x);
    n->weight[0] = w;
    return output(g, n, w->experts * w->rows, shape(g, x).rows);
}

/* May each value of narrow stand for some neighbours of wide? */
static bool spreads(const struct graph *g, value_id narrow, value_id wide) {
    struct value a = shape(g, narrow), b = shape(g, wide);
    return g->failed || (a.rows == b.rows && a.used == b.used && b.cols % a.cols == 0);
}

value_id graph_act(struct graph *g, value_id x, enum act_kind act) {
    struct node *n = new_node(g, OP_act, 1, &x);
    n->u.act.kind = act;
    return like(g, n, x);
}

value_id graph_glu(struct graph *g, value_id gate, value_id up, enum act_kind act) {
    assert(spreads(g, gate, up));
    struct node *n = new_node(g, OP_glu, 2, (value_id[]){gate, up});
    n->u.glu.act = act;
    return like(g, n, up);
}

value_id graph_glu_clamped(struct graph *g, value_id gate, value_id up,
                           const struct glu_clamp *clamp) {
    assert(g->failed || shape(g, gate).cols == shape(g, up).cols);
    struct node *n = new_node(g, OP_glu_clamped, 2, (value_id[]){gate, up});
    n->u.glu_clamped = *clamp;
    return like(g, n, gate);
}

value_id graph_xielu(struct graph *g, value_id x, const struct xielu *args) {
    struct node *n = new_node(g, OP_xielu, 1, &x);
    n->u.xielu = *args;
    return like(g, n, x);
}

value_id graph_add(struct graph *g, value_id a, value_id b) {
    assert(g->failed || shape(g, a).cols == shape(g, b).cols);
    struct node *n = new_node(g, OP_add, 2, (value_id[]){a, b});
    return like(g, n, a);
}

value_id graph_mul(struct graph *g, value_id a, value_id b) {
    assert(spreads(g, b, a));
    struct node *n = new_node(g, OP_mul, 2, (value_id[]){a, b});
    return like(g, n, a);
}

value_id graph_affine(struct graph *g, value_id x, struct weight *w, struct weight *bias) {
    assert(g->failed || ((!w || w->cols == shape(g, x).cols) &&
                         (!bias || bias->cols == shape(g, x).cols)));
    struct node *n = new_node(g, OP_affine, 1, &x);
    n->weight[0] = w;
    n->bias[0] = bias;
    return like(g, n, x);
}

value_id graph_clamp(struct graph *g, value_id x, float low, float high) {
    struct node *n = new_node(g, OP_clamp, 1, &x);
    n->u.clamp.low = low;
    n->u.clamp.high = high;
    return like(g, n, x);
}

static value_id scale_position(struct graph *g, value_id x, float beta, uint32_t offset,
                               float period, enum position_factor kind) {
    struct node *n = new_node(g, OP_scale_position, 1, &x);
    assert(g->failed || shape(g, x).rows == ROWS_TOKENS);
    n->u.scale_position.beta = beta;
    n->u.scale_position.offset = offset;
    n->u.scale_position.period = period;
    n->u.scale_position.kind = kind;
    return like(g, n, x);
}

value_id graph_scale_position(struct graph *g, value_id x, float beta, uint32_t offset,
                              float period) {
    return scale_position(g, x, beta, offset, period, POSITION_STEPS);
}

value_id graph_log_position(struct graph *g, value_id x, float beta, uint32_t offset,
                            float period) {
    return scale_position(g, x, beta, offset, period, POSITION_LOG);
}

value_id graph_power_position(struct graph *g, value_id x, float exponent, uint32_t offset,
                              float period) {
    return scale_position(g, x, exponent, offset, period, POSITION_POWER);
}

/* An output with the rows of x, but as many columns. */
static value_id as_wide(struct graph *g, struct node *n, value_id x, uint32_t cols) {
    struct value y = shape(g, x);
    y.cols = cols;
    return n->out[n->outputs++] = new_value(g, y);
}

value_id graph_concat(struct graph *g, value_id a, uint32_t a_cols, value_id b, uint32_t b_cols,
                      uint32_t groups) {
    uint32_t a_has = shape(g, a).cols, b_has = shape(g, b).cols;
    assert(g->failed || a_has == a_cols || a_has == groups * a_cols);
    assert(g->failed || b_has == b_cols || b_has == groups * b_cols);
    struct node *n = new_node(g, OP_concat, 2, (value_id[]){a, b});
    n->u.concat.a_cols = a_cols;
    n->u.concat.b_cols = b_cols;
    n->u.concat.groups = groups;
    return as_wide(g, n, a, groups * (a_cols + b_cols));
}

value_id graph_slice(struct graph *g, value_id x, uint32_t groups, uint32_t total, uint32_t start,
                     uint32_t len) {
    assert(g->failed || (shape(g, x).cols == groups * total && start + len <= total && len > 0));
    struct node *n = new_node(g, OP_slice, 1, &x);
    n->u.slice.groups = groups;
    n->u.slice.total = total;
    n->u.slice.start = start;
    n->u.slice.len = len;
    return as_wide(g, n, x, groups * len);
}

value_id graph_tile(struct graph *g, value_id x, uint32_t groups, uint32_t width, uint32_t times) {
    assert(g->failed || shape(g, x).cols == groups * width);
    struct node *n = new_node(g, OP_tile, 1, &x);
    n->u.tile.groups = groups;
    n->u.tile.width = width;
    n->u.tile.times = times;
    return as_wide(g, n, x, groups * width * times);
}

value_id graph_scale(struct graph *g, value_id x, float s) {
    struct node *n = new_node(g, OP_scale, 1, &x);
    n->u.scale.value = s;
    return like(g, n, x);
}

value_id graph_dot(struct graph *g, value_id a, value_id b, uint32_t width) {
    uint32_t cols = shape(g, a).cols;
    assert(g->failed || (shape(g, b).cols == cols && cols % width == 0));
    struct node *n = new_node(g, OP_dot, 2, (value_id[]){a, b});
    n->u.dot.width = width;
    return output(g, n, cols / width, shape(g, a).rows);
}

value_id graph_softcap(struct graph *g, value_id x, float cap) {
    struct node *n = new_node(g, OP_softcap, 1, &x);
    n->u.softcap.cap = cap;
    return like(g, n, x);
}

value_id graph_sparsify(struct graph *g, value_id x, float by) {
    struct node *n = new_node(g, OP_sparsify, 1, &x);
    n->u.sparsify.by = by;
    return like(g, n, x);
}

value_id graph_match_rms(struct graph *g, value_id a, value_id b, float floor) {
    assert(g->failed || shape(g, a).cols == shape(g, b).cols);
    struct node *n = new_node(g, OP_match_rms, 2, (value_id[]){a, b});
    n->u.match_rms.floor = floor;
    return like(g, n, a);
}

value_id graph_mix(struct graph *g, value_id x, value_id w, uint32_t width) {
    uint32_t from = shape(g, x).cols / width, to = shape(g, w).cols / (from ? from : 1);
    assert(g->failed || (shape(g, x).cols == from * width && shape(g, w).cols == from * to &&
                         from > 0 && to > 0 && from <= MIX_MAX));
    struct node *n = new_node(g, OP_mix, 2, (value_id[]){x, w});
    n->u.mix.from = from;
    n->u.mix.to = to;
    n->u.mix.width = width;
    return as_wide(g, n, x, to * width);
}

value_id graph_sinkhorn(struct graph *g, value_id x, uint32_t n, uint32_t rounds, float eps) {
    assert(g->failed || (shape(g, x).cols == n * n && rounds > 0));
    struct node *node = new_node(g, OP_sinkhorn, 1, &x);
    node->u.sinkhorn.n = n;
    node->u.sinkhorn.rounds = rounds;
    node->u.sinkhorn.eps = eps;
    return like(g, node, x);
}

value_id graph_round_act(struct graph *g, value_id x, value_id *step) {
    struct node *n = new_node(g, OP_round_act, 1, &x);
    value_id codes = like(g, n, x);
    *step = as_wide(g, n, x, 1);
    return codes;
}

value_id graph_rope_table(struct graph *g, const struct rope_table_args *args) {
    struct node *n = new_node(g, OP_rope_table, 0, NULL);
    n->u.rope_table = *args;
    return output(g, n, 2 * args->half, ROWS_TOKENS);
}

value_id graph_rope(struct graph *g, value_id x, value_id table, uint32_t heads, uint32_t head_dim,
                    bool interleaved) {
    uint32_t half = shape(g, table).cols / 2;
    assert(g->failed || (shape(g, x).cols == heads * head_dim && 2 * half <= head_dim));
    struct node *n = new_node(g, OP_rope, 2, (value_id[]){x, table});
    n->u.rope.heads = heads;
    n->u.rope.head_dim = head_dim;
    n->u.rope.half = half;
    n->u.rope.interleaved = interleaved;
    return like(g, n, x);
}

/* The group of layers with this cache shape, made if new; the layer gets the next slot in it. */
static uint32_t new_cache(struct graph *g, struct cache_group want) {
    uint32_t i = 0;
    while (i < g->groups) {
        struct cache_group have = g->group[i];
        have.layers = 0;
        if (memcmp(&have, &want, sizeof want) == 0) break;
        i++;
    }
    if (i == g->groups) {
        if (!grow(g, &g->group, g->groups, &g->group_cap, sizeof *g->group)) return 0;
        g->group[g->groups++] = want;
    }
    if (!grow(g, &g->cache, g->caches, &g->cache_cap, sizeof *g->cache)) return 0;
    g->cache[g->caches] = (struct cache){
        .group = i, .slot = g->group[i].layers++, .node = g->nodes - 1};
    return g->caches++;
}

/* Has the cache that is shared this shape, and does it still hold what the node sees? */
static bool holds(const struct graph *g, const struct attention_args *a) {
    if (a->shared_cache >= g->caches) return false;
    const struct cache_group *have = &g->group[g->cache[a->shared_cache].group];
    bool same = have->kv_heads == a->kv_heads && have->k_dim == a->k_dim && have->v_dim == a->v_dim;
    if (have->kind == CACHE_CHUNK) return same && a->chunk == have->window;
    if (have->kind == CACHE_WINDOW) return same && a->window > 0 && a->window <= have->window;
    return same;
}

/* What a bidirectional layer stores is for one step, which reads all of it. */
static uint32_t attention_cache(struct graph *g, const struct attention_args *a) {
    uint32_t window = a->bidirectional ? 0 : a->chunk ? a->chunk : a->window;
    return new_cache(g, (struct cache_group){.kind = !window    ? CACHE_FULL
                                                     : a->chunk ? CACHE_CHUNK
                                                                : CACHE_WINDOW,
                                             .window = window,
                                             .kv_heads = a->kv_heads,
                                             .k_dim = a->k_dim,
                                             .v_dim = a->v_dim});
}

static uint32_t beside_cache(struct graph *g, const struct attention_args *a) {
    return new_cache(g, (struct cache_group){.kind = CACHE_FULL,
                                             .every = a->every,
                                             .kv_heads = a->kv_heads,
                                             .k_dim = a->k_dim,
                                             .v_dim = a->v_dim});
}

/* No more than the head's own keys is known of what a query sees beside them. */
static bool fits_beside(const struct graph *g, const struct attention_args *a) {
    return a->every > 0 && shape(g, a->beside).cols == a->kv_heads * a->k_dim &&
           a->k_dim == a->v_dim && !a->bidirectional && !a->alibi && !a->has_by_distance;
}

/* Does each KV head have a list of its own? */
static bool selects_by_head(const struct graph *g, const struct attention_args *a) {
    for (uint32_t i = 0; a->selects && i < g->nodes; i++)
        if (g->node[i].op == OP_index_select && g->node[i].out[0] == a->selection)
            return g->node[i].u.index_select.block > 0 && !g->node[i].u.index_select.whole;
    return false;
}

value_id graph_attention(struct graph *g, value_id q, value_id k, value_id v,
                         const struct attention_args *a) {
    assert(g->failed || (shape(g, q).cols == a->heads * a->k_dim && a->heads % a->kv_heads == 0));
    assert(g->failed || (a->shares ? k == NO_VALUE && v == NO_VALUE && holds(g, a)
                                   : shape(g, k).cols == a->kv_heads * a->k_dim &&
                                         shape(g, v).cols == a->kv_heads * a->v_dim));
    assert(!a->chunk || (!a->window && !a->bidirectional));
    assert(!a->sinks || a->sinks->cols == a->heads);
    value_id in[NODE_INPUTS] = {q, k, v};
    uint32_t inputs = a->shares ? 1 : 3;
    uint32_t selection = 0, by_distance = 0, by_key = 0, sinks = 0, beside = 0;
    if (a->selects) in[selection = inputs++] = a->selection;
    if (a->has_by_distance) in[by_distance = inputs++] = a->by_distance;
    if (a->has_token_sinks) in[sinks = inputs++] = a->token_sinks;
    if (a->has_beside) in[beside = inputs++] = a->beside;
    if (a->has_by_key) in[by_key = inputs++] = a->by_key;
    assert(!a->bidirectional || !a->has_by_distance || a->places);
    assert(!a->places || (a->bidirectional && !a->selects && (by_distance || by_key)));
    assert(!a->offsets || (!a->alibi && !a->has_by_distance));
    assert(g->failed || !a->has_beside || fits_beside(g, a));
    struct node *n = new_node(g, OP_attention, inputs, in);
    n->u.attention.selection = selection;
    n->u.attention.selections = selects_by_head(g, a) ? a->kv_heads : 1;
    n->u.attention.by_distance = by_distance;
    n->u.attention.sinks = sinks;
    n->u.attention.beside = beside;
    n->u.attention.every = a->every;
    n->weight[0] = a->sinks;
    n->u.attention.heads = a->heads;
    n->u.attention.kv_heads = a->kv_heads;
    n->u.attention.k_dim = a->k_dim;
    n->u.attention.v_dim = a->v_dim;
    n->u.attention.window = a->window;
    n->u.attention.chunk = a->chunk;
    n->u.attention.bidirectional = a->bidirectional;
    n->u.attention.shares = a->shares;
    n->u.attention.selects = a->selects;
    n->u.attention.alibi = a->alibi;
    n->u.attention.offsets = a->offsets;
    n->u.attention.places = a->places;
    n->u.attention.by_key = by_key;
    n->u.attention.reach = a->reach;
    n->u.attention.scale = a->scale;
    n->u.attention.softcap = a->softcap;
    n->u.attention.cache = a->shares ? a->shared_cache : attention_cache(g, a);
    if (a->has_beside) n->u.attention.beside_cache = beside_cache(g, a);
    g->whole |= a->bidirectional;
    return output(g, n, a->heads * a->v_dim, ROWS_TOKENS);
}

bool graph_depends_on_length(const struct graph *g) {
    for (uint32_t i = 0; i < g->nodes; i++)
        if (g->node[i].op == OP_rope_table && g->node[i].u.rope_table.original > 0) return true;
    return false;
}

uint32_t graph_positions(const struct graph *g) {
    uint32_t most = UINT32_MAX;
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        if (n->op != OP_embed_position) continue;
        uint32_t rows = n->weight[0]->rows - (uint32_t)n->u.embed_position.offset;
        if (rows < most) most = rows;
    }
    return most;
}

uint32_t graph_attention_cache(const struct graph *g, value_id out) {
    for (uint32_t i = 0; i < g->nodes; i++)
        if (g->node[i].op == OP_attention && g->node[i].out[0] == out)
            return g->node[i].u.attention.cache;
    assert(g->failed);
    return 0;
}

/* An index_select of the first `inputs` of `in`: q, k and weights, with a cache of its keys. */
static struct node *new_index(struct graph *g, uint32_t inputs, const value_id *in, uint32_t used,
                              uint32_t every) {
    uint32_t dim = shape(g, in[1]).cols;
    assert(g->failed || (used > 0 && shape(g, in[0]).cols % dim == 0));
    struct node *n = new_node(g, OP_index_select, inputs, in);
    n->u.index_select.heads = shape(g, in[0]).cols / dim;
    n->u.index_select.dim = dim;
    n->u.index_select.used = used;
    n->u.index_select.every = every;
    n->u.index_select.cache = new_cache(
        g,
        (struct cache_group){.kind = CACHE_FULL, .every = every, .kv_heads = 1, .k_dim = dim});
    return n;
}

value_id graph_index_select(struct graph *g, value_id q, value_id weights, value_id k,
                            uint32_t used, uint32_t every) {
    assert(g->failed || shape(g, q).cols == shape(g, weights).cols * shape(g, k).cols);
    struct node *n = new_index(g, 3, (value_id[]){q, k, weights}, used, every);
    return output(g, n, used, ROWS_TOKENS);
}

value_id graph_block_select(struct graph *g, value_id q, value_id k, uint32_t block, uint32_t used,
                            uint32_t local) {
    assert(g->failed || (local <= used && SELECT_BLOCKS % block == 0));
    struct node *n = new_index(g, 2, (value_id[]){q, k}, used, 0);
    n->u.index_select.block = block;
    n->u.index_select.local = local;
    return output(g, n, n->u.index_select.heads * used * block, ROWS_TOKENS);
}

value_id graph_whole_select(struct graph *g, value_id q, value_id k, uint32_t block,
                            uint32_t used) {
    assert(g->failed || SELECT_BLOCKS % block == 0);
    struct node *n = new_index(g, 2, (value_id[]){q, k}, used, 0);
    n->u.index_select.block = block;
    n->u.index_select.whole = true;
    return output(g, n, (used + 1) * block - 1, ROWS_TOKENS);
}

value_id graph_gather_rows(struct graph *g, value_id x) {
    struct node *n = new_node(g, OP_gather_rows, 1, &x);
    return output(g, n, shape(g, x).cols, ROWS_LOGITS);
}

value_id graph_pool(struct graph *g, value_id x, enum pool_kind kind) {
    assert(g->failed || shape(g, x).rows == ROWS_TOKENS);
    struct node *n = new_node(g, OP_pool, 1, &x);
    n->u.pool.kind = kind;
    g->whole = true;
    return output(g, n, shape(g, x).cols, ROWS_SEQS);
}

/* A group has experts enough for its value, those left enough for a token. */
enum route_fault graph_route_fault(const struct route_args *a, uint32_t experts) {
    if (experts > ROUTE_EXPERTS_MAX) return ROUTE_FAULT_EXPERTS;
    if (a->used < 1 || a->used > EXPERTS_USED_MAX || a->used > experts || a->always >= a->used)
        return ROUTE_FAULT_USED;
    if (a->groups <= 1) return ROUTE_FITS;
    uint32_t size = experts / a->groups, least = a->group == ROUTE_GROUP_TOP2 ? 2 : 1;
    bool fits = a->groups <= ROUTE_GROUPS_MAX && experts % a->groups == 0 && size >= least &&
                a->groups_used >= 1 && a->groups_used <= a->groups &&
                a->used <= size * a->groups_used && !a->always;
    return fits ? ROUTE_FITS : ROUTE_FAULT_GROUPS;
}

static bool fits_route(const struct route_args *a, uint32_t experts) {
    if (graph_route_fault(a, experts) != ROUTE_FITS) return false;
    uint32_t choices = experts - a->always;
    return (!a->bias || (a->bias->cols >= choices && a->bias->cols <= experts)) &&
           (!a->expert_scale || a->expert_scale->cols == experts);
}

value_id graph_route(struct graph *g, value_id logits, const struct route_args *args) {
    assert(g->failed || fits_route(args, shape(g, logits).cols));
    assert(g->failed || !args->has_chosen || shape(g, args->chosen).cols == args->used);
    value_id in[] = {logits, args->chosen};
    struct node *n = new_node(g, OP_route, args->has_chosen ? 2 : 1, in);
    n->u.route = *args;
    if (args->scale == 0) n->u.route.scale = 1;
    n->bias[0] = args->bias;
    n->bias[1] = args->expert_scale;
    return output(g, n, 2 * args->used, ROWS_TOKENS);
}

value_id graph_route_rest(struct graph *g, value_id route, uint32_t first) {
    struct node *n = new_node(g, OP_route_rest, 1, &route);
    n->u.route_rest.first = first;
    return output(g, n, 1, ROWS_TOKENS);
}

void graph_linear_experts(struct graph *g, value_id x, value_id route, uint32_t count,
                          struct weight *const *w, struct weight *const *bias, value_id *out) {
    assert(count >= 1 && count <= NODE_OUTPUTS);
    uint32_t cols = shape(g, x).cols, used = shape(g, route).cols / 2;
    struct node *n = new_node(g, OP_linear_experts, 2, (value_id[]){x, route});
    for (uint32_t i = 0; i < count; i++) {
        assert(g->failed || (w[i]->cols == cols && w[i]->experts == w[0]->experts));
        n->weight[i] = w[i];
        n->bias[i] = bias ? bias[i] : NULL;
        assert(g->failed || !n->bias[i] ||
               (n->bias[i]->cols == w[i]->rows && n->bias[i]->experts == w[i]->experts));
        struct value y = {.cols = w[i]->rows, .rows = ROWS_EXPERTS, .used = used};
        out[i] = n->out[n->outputs++] = new_value(g, y);
    }
}

value_id graph_combine(struct graph *g, value_id x, value_id route) {
    assert(g->failed || shape(g, x).rows == ROWS_EXPERTS);
    struct node *n = new_node(g, OP_combine, 2, (value_id[]){x, route});
    return output(g, n, shape(g, x).cols, ROWS_TOKENS);
}

value_id graph_join_pairs(struct graph *g, value_id x, value_id route) {
    uint32_t used = shape(g, route).cols / 2;
    assert(g->failed || (shape(g, x).rows == ROWS_EXPERTS && shape(g, x).used == used));
    struct node *n = new_node(g, OP_join_pairs, 2, (value_id[]){x, route});
    return output(g, n, used * shape(g, x).cols, ROWS_TOKENS);
}

value_id graph_split_pairs(struct graph *g, value_id x, value_id route) {
    uint32_t used = shape(g, route).cols / 2, cols = shape(g, x).cols;
    assert(g->failed || (shape(g, x).rows == ROWS_TOKENS && cols % used == 0));
    struct node *n = new_node(g, OP_split_pairs, 2, (value_id[]){x, route});
    struct value y = {.cols = used ? cols / used : 1, .rows = ROWS_EXPERTS, .used = used};
    return n->out[n->outputs++] = new_value(g, y);
}

/* ---- recurrent layers ---- */

static uint32_t new_state(struct graph *g, uint32_t floats) {
    return new_cache(g, (struct cache_group){.kind = CACHE_STATE,
                                             .state_floats = (floats + 15) & ~(uint32_t)15});
}

value_id graph_embed_ngrams(struct graph *g, struct weight *w, const struct ngram_args *args) {
    assert(args->order >= 2 && args->order <= NGRAM_ORDER_MAX);
    struct node *n = new_node(g, OP_embed_ngrams, 0, NULL);
    n->weight[0] = w;
    n->u.embed_ngrams.args = *args;
    n->u.embed_ngrams.cache = new_state(g, args->order - 1);
    return output(g, n, (args->order - 1) * args->heads * w->cols, ROWS_TOKENS);
}

value_id graph_conv1d(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                      uint32_t kernel) {
    return graph_conv1d_apart(g, x, w, bias, kernel, 1);
}

value_id graph_conv1d_apart(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                            uint32_t kernel, uint32_t step) {
    uint32_t cols = shape(g, x).cols;
    assert(g->failed || (shape(g, x).rows == ROWS_TOKENS && kernel >= 1 && w->rows == cols &&
                         w->cols == kernel && (!bias || bias->cols == cols)));
    struct node *n = new_node(g, OP_conv1d, 1, &x);
    n->weight[0] = w;
    n->bias[0] = bias;
    n->u.conv1d.kernel = kernel;
    n->u.conv1d.step = step;
    n->u.conv1d.cache = new_state(g, (kernel - 1) * step * cols);
    return like(g, n, x);
}

value_id graph_rglru(struct graph *g, value_id x, value_id log_decay) {
    assert(g->failed || shape(g, x).cols == shape(g, log_decay).cols);
    struct node *n = new_node(g, OP_rglru, 2, (value_id[]){x, log_decay});
    n->u.rglru.cache = new_state(g, shape(g, x).cols);
    return like(g, n, x);
}

value_id graph_token_shift(struct graph *g, value_id x) {
    assert(g->failed || shape(g, x).rows == ROWS_TOKENS);
    struct node *n = new_node(g, OP_token_shift, 1, &x);
    n->u.token_shift.cache = new_state(g, shape(g, x).cols);
    return like(g, n, x);
}

value_id graph_compress(struct graph *g, value_id kv, value_id gate, struct weight *bias,
                        uint32_t every, bool overlaps) {
    uint32_t series = overlaps ? 2 : 1, all = shape(g, kv).cols, cols = all / series;
    assert(g->failed || (all == series * cols && shape(g, gate).cols == all && every > 0 &&
                         bias->rows == every && bias->cols == all));
    struct node *n = new_node(g, OP_compress, 2, (value_id[]){kv, gate});
    n->weight[0] = bias;
    n->u.compress.every = every;
    n->u.compress.overlaps = overlaps;
    n->u.compress.cache = new_state(g, 3 * all);
    return output(g, n, cols, ROWS_TOKENS);
}

static bool delta_shapes(const struct graph *g, const struct delta_args *a) {
    if (g->failed) return true;
    uint32_t decay = a->decay == NO_VALUE ? 0 : shape(g, a->decay).cols;
    return a->heads % a->k_heads == 0 && shape(g, a->q).cols == a->k_heads * a->k_dim &&
           shape(g, a->k).cols == a->k_heads * a->k_dim &&
           shape(g, a->v).cols == a->heads * a->v_dim &&
           (decay == 0 ? a->fixed_decay != NULL
                       : decay == a->heads || decay == a->heads * a->k_dim) &&
           (a->beta == NO_VALUE || shape(g, a->beta).cols == a->heads) &&
           (!a->skip || a->skip->cols == a->heads);
}

value_id graph_delta(struct graph *g, const struct delta_args *a) {
    assert(delta_shapes(g, a));
    struct node *n =
        new_node(g, OP_delta, 5, (value_id[]){a->q, a->k, a->v, a->decay, a->beta});
    n->bias[0] = a->skip;
    n->u.delta.heads = a->heads;
    n->u.delta.k_heads = a->k_heads;
    n->u.delta.k_dim = a->k_dim;
    n->u.delta.v_dim = a->v_dim;
    n->u.delta.delta = a->delta;
    n->u.delta.k_tiled = a->k_tiled;
    n->u.delta.decay_each = a->decay != NO_VALUE && shape(g, a->decay).cols != a->heads;
    n->u.delta.scale = a->scale;
    n->u.delta.fixed_decay = a->fixed_decay;
    n->u.delta.cache = new_state(g, a->heads * a->k_dim * a->v_dim);
    return like(g, n, a->v);
}

value_id graph_mlstm(struct graph *g, const struct mlstm_args *a) {
    assert(g->failed || (shape(g, a->q).cols == a->heads * a->k_dim &&
                         shape(g, a->k).cols == a->heads * a->k_dim &&
                         shape(g, a->v).cols == a->heads * a->v_dim &&
                         shape(g, a->gate).cols == a->heads &&
                         shape(g, a->log_decay).cols == a->heads));
    struct node *n =
        new_node(g, OP_mlstm, 5, (value_id[]){a->q, a->k, a->v, a->gate, a->log_decay});
    n->u.mlstm.heads = a->heads;
    n->u.mlstm.k_dim = a->k_dim;
    n->u.mlstm.v_dim = a->v_dim;
    n->u.mlstm.scale = a->scale;
    n->u.mlstm.eps = a->eps;
    n->u.mlstm.cache = new_state(g, a->heads * (a->k_dim * (a->v_dim + 1) + 1));
    return like(g, n, a->v);
}

value_id graph_scan(struct graph *g, const struct scan_args *a) {
    uint32_t cols = shape(g, a->x).cols, heads = a->heads ? a->heads : 1;
    assert(g->failed || (shape(g, a->dt).cols == cols && a->a->rows == cols &&
                         cols % heads == 0 && shape(g, a->b).cols == heads * a->a->cols &&
                         shape(g, a->c).cols == heads * a->a->cols &&
                         (!a->d || a->d->cols == cols)));
    struct node *n = new_node(g, OP_scan, 4, (value_id[]){a->x, a->dt, a->b, a->c});
    n->weight[0] = a->a;
    n->bias[0] = a->d;
    n->u.scan.heads = heads;
    n->u.scan.n = a->a->cols;
    n->u.scan.cache = new_state(g, a->a->cols * cols);
    return like(g, n, a->x);
}

value_id graph_wkv4(struct graph *g, value_id k, value_id v, struct weight *decay,
                    struct weight *first) {
    uint32_t cols = shape(g, k).cols;
    assert(g->failed || (shape(g, v).cols == cols && decay->cols == cols && first->cols == cols));
    struct node *n = new_node(g, OP_wkv4, 2, (value_id[]){k, v});
    n->weight[0] = decay;
    n->bias[0] = first;
    n->u.wkv4.cache = new_state(g, 3 * cols);
    return like(g, n, v);
}
