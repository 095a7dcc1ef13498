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
    *g = (struct graph){.arena = arena, .logits = NO_VALUE, .layer = -1};
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

value_id graph_norm(struct graph *g, value_id x, struct weight *w, struct weight *bias,
                    enum norm_kind kind, float eps, uint32_t width) {
    assert(g->failed || (shape(g, x).cols % width == 0 && (!w || w->cols == width)));
    struct node *n = new_node(g, OP_norm, 1, &x);
    n->weight[0] = w;
    n->bias[0] = bias;
    n->u.norm.kind = kind;
    n->u.norm.eps = eps;
    n->u.norm.width = width;
    return like(g, n, x);
}

void graph_linear(struct graph *g, value_id x, uint32_t count, struct weight *const *w,
                  struct weight *const *bias, value_id *out) {
    assert(count >= 1 && count <= NODE_OUTPUTS);
    struct value s = shape(g, x);
    struct node *n = new_node(g, OP_linear, 1, &x);
    for (uint32_t i = 0; i < count; i++) {
        assert(g->failed || w[i]->cols == s.cols);
        n->weight[i] = w[i];
        n->bias[i] = bias ? bias[i] : NULL;
        out[i] = output(g, n, w[i]->rows, s.rows);
    }
}

value_id graph_linear1(struct graph *g, value_id x, struct weight *w, struct weight *bias) {
    value_id out;
    graph_linear(g, x, 1, &w, &bias, &out);
    return out;
}

value_id graph_glu(struct graph *g, value_id gate, value_id up, enum act_kind act) {
    struct node *n = new_node(g, OP_glu, 2, (value_id[]){gate, up});
    n->u.glu.act = act;
    return like(g, n, gate);
}

value_id graph_add(struct graph *g, value_id a, value_id b) {
    assert(g->failed || shape(g, a).cols == shape(g, b).cols);
    struct node *n = new_node(g, OP_add, 2, (value_id[]){a, b});
    return like(g, n, a);
}

value_id graph_scale(struct graph *g, value_id x, float s) {
    struct node *n = new_node(g, OP_scale, 1, &x);
    n->u.scale.value = s;
    return like(g, n, x);
}

value_id graph_softcap(struct graph *g, value_id x, float cap) {
    struct node *n = new_node(g, OP_softcap, 1, &x);
    n->u.softcap.cap = cap;
    return like(g, n, x);
}

value_id graph_rope_table(struct graph *g, const float *freq, uint32_t half, float magnitude) {
    struct node *n = new_node(g, OP_rope_table, 0, NULL);
    n->u.rope_table.freq = freq;
    n->u.rope_table.half = half;
    n->u.rope_table.magnitude = magnitude;
    return output(g, n, 2 * half, ROWS_TOKENS);
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
static uint32_t new_cache(struct graph *g, const struct attention_args *a) {
    struct cache_group want = {.kind = a->window ? CACHE_WINDOW : CACHE_FULL,
                               .window = a->window,
                               .kv_heads = a->kv_heads,
                               .k_dim = a->k_dim,
                               .v_dim = a->v_dim};
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
    g->cache[g->caches] = (struct cache){.group = i, .slot = g->group[i].layers++};
    return g->caches++;
}

value_id graph_attention(struct graph *g, value_id q, value_id k, value_id v,
                         const struct attention_args *a) {
    assert(g->failed ||
           (shape(g, q).cols == a->heads * a->k_dim && shape(g, k).cols == a->kv_heads * a->k_dim &&
            shape(g, v).cols == a->kv_heads * a->v_dim && a->heads % a->kv_heads == 0));
    struct node *n = new_node(g, OP_attention, 3, (value_id[]){q, k, v});
    n->u.attention.heads = a->heads;
    n->u.attention.kv_heads = a->kv_heads;
    n->u.attention.k_dim = a->k_dim;
    n->u.attention.v_dim = a->v_dim;
    n->u.attention.window = a->window;
    n->u.attention.scale = a->scale;
    n->u.attention.softcap = a->softcap;
    n->u.attention.cache = new_cache(g, a);
    return output(g, n, a->heads * a->v_dim, ROWS_TOKENS);
}

value_id graph_gather_rows(struct graph *g, value_id x) {
    struct node *n = new_node(g, OP_gather_rows, 1, &x);
    return output(g, n, shape(g, x).cols, ROWS_LOGITS);
}

value_id graph_route(struct graph *g, value_id logits, enum route_kind kind, uint32_t used) {
    assert(g->failed || (used >= 1 && used <= EXPERTS_USED_MAX && used <= shape(g, logits).cols));
    struct node *n = new_node(g, OP_route, 1, &logits);
    n->u.route.kind = kind;
    n->u.route.used = used;
    return output(g, n, 2 * used, ROWS_TOKENS);
}

void graph_linear_experts(struct graph *g, value_id x, value_id route, uint32_t count,
                          struct weight *const *w, value_id *out) {
    assert(count >= 1 && count <= NODE_OUTPUTS);
    uint32_t cols = shape(g, x).cols, used = shape(g, route).cols / 2;
    struct node *n = new_node(g, OP_linear_experts, 2, (value_id[]){x, route});
    for (uint32_t i = 0; i < count; i++) {
        assert(g->failed || (w[i]->cols == cols && w[i]->experts == w[0]->experts));
        n->weight[i] = w[i];
        struct value y = {.cols = w[i]->rows, .rows = ROWS_EXPERTS, .used = used};
        out[i] = n->out[n->outputs++] = new_value(g, y);
    }
}

value_id graph_combine(struct graph *g, value_id x, value_id route) {
    assert(g->failed || shape(g, x).rows == ROWS_EXPERTS);
    struct node *n = new_node(g, OP_combine, 2, (value_id[]){x, route});
    return output(g, n, shape(g, x).cols, ROWS_TOKENS);
}
