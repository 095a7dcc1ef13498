/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse.c: nodes that share a kernel, found once a plan:
 *     norm, glu, attention (on tensor cores), then linear    the first writes the halved rows that
 *                                 the second multiplies; linears of one input halve it once
 *     rope of q, rope of k, attention    one kernel turns both and stores k and v, and does the RMS
 *                                 norms of heads before them
 *     linear, then add            the product's kernel adds
 * Each does the arithmetic of its nodes in their order: the bits are those of the nodes alone. */
#include "devices/cuda/cuda.h"

struct use {
    const struct node *maker;
    uint32_t readers;
};

/* ---- halved rows ---- */

static bool can_halve(const struct device_plan *p, const struct node *n) {
    uint32_t cols = p->graph->value[n->out[0]].cols;
    if (cols % 4 != 0) return false;
    if (n->op == OP_attention) return cuda_attention_is_mma(p, n);
    if (n->op == OP_glu) return p->graph->value[n->in[0]].cols == cols;
    bool kind = n->op == OP_norm && (n->u.norm.kind == NORM_RMS || n->u.norm.kind == NORM_LAYER);
    return kind && n->u.norm.width == cols;
}

/* What the next node that takes halved rows takes. */
static value_id next_halved(const struct device_plan *p, uint32_t from) {
    for (uint32_t i = from; i < p->graph->nodes; i++)
        if (cuda_is_halving(&p->graph->node[i])) return p->graph->node[i].in[0];
    return NO_VALUE;
}

static void fuse_halves(struct device_plan *p) {
    value_id held = NO_VALUE; /* what lies in p->act */
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        if (cuda_is_halving(n)) {
            p->info[i].halved = held == n->in[0];
            held = n->in[0];
        } else if (can_halve(p, n) && next_halved(p, i + 1) == n->out[0]) {
            p->info[i].halves = true;
            held = n->out[0];
        }
    }
}

/* ---- rope, store ---- */

static bool overlap(const struct device_plan *p, value_id a, value_id b) {
    size_t rows_a = value_rows(&p->graph->value[a], p->tokens, p->logits, p->tokens);
    size_t rows_b = value_rows(&p->graph->value[b], p->tokens, p->logits, p->tokens);
    size_t at = p->layout.offset[a], other = p->layout.offset[b];
    return at < other + rows_b * p->graph->value[b].cols * sizeof(float) &&
           other < at + rows_a * p->graph->value[a].cols * sizeof(float);
}

static bool is_output(const struct graph *g, value_id v) {
    return v == g->logits || v == g->embedding || v == g->pooled;
}

static const struct node *lone_rope(const struct device_plan *p, const struct use *use,
                                    value_id v) {
    const struct graph *g = p->graph;
    const struct node *n = use[v].maker;
    bool good = n && n->op == OP_rope && use[v].readers == 1 && !is_output(g, v) &&
                n->u.rope.head_dim <= ROPE_STORE_MAX;
    return good ? n : NULL;
}

/* The RMS norm of heads before a rope; NULL: none. */
static const struct node *lone_norm(const struct device_plan *p, const struct use *use,
                                    const struct node *rope) {
    value_id v = rope->in[0];
    const struct node *n = use[v].maker;
    bool good = n && n->op == OP_norm && n->u.norm.kind == NORM_RMS &&
                n->u.norm.width == rope->u.rope.head_dim && n->u.norm.width <= ROPE_NORM_MAX &&
                use[v].readers == 1 && !is_output(p->graph, v) &&
                !p->info[n - p->graph->node].halves;
    return good ? n : NULL;
}

/* Does v, an input of `from`, still lie there when `at`, a later node, runs? */
static bool stays(const struct device_plan *p, value_id v, const struct node *from,
                  const struct node *at) {
    for (const struct node *n = from + 1; n < at; n++)
        for (uint32_t o = 0; o < n->outputs && !cuda_info(p, n)->elsewhere; o++)
            if (overlap(p, v, n->out[o])) return false;
    return true;
}

/* What the kernel of both ropes reads must lie there still, and not be where it writes q, but for
 * q's own heads: a block reads its head before it writes it. */
static bool inputs_stay(const struct device_plan *p, const struct node *rope,
                        const struct node *norm, const struct node *at) {
    const struct node *first = norm ? norm : rope;
    value_id x = first->in[0], table = rope->in[1], q = at->in[0];
    bool own = rope->out[0] == q && p->layout.offset[x] == p->layout.offset[q];
    return stays(p, x, first, at) && stays(p, table, rope, at) && !overlap(p, table, q) &&
           (own || !overlap(p, x, q));
}

static void fuse_rope(struct device_plan *p, const struct use *use, const struct node *n) {
    if (n->u.attention.shares || n->u.attention.beside) return;
    const struct node *rope[2] = {lone_rope(p, use, n->in[0]), lone_rope(p, use, n->in[1])};
    const struct node *base = p->graph->node;
    if (!rope[0] || !rope[1] || n->in[2] == NO_VALUE ||
        rope[1]->u.rope.heads != n->u.attention.kv_heads ||
        p->graph->group[p->graph->cache[n->u.attention.cache].group].v_dim == 0)
        return;
    const struct node *norm[2] = {lone_norm(p, use, rope[0]), lone_norm(p, use, rope[1])};
    for (int norms = 1; norms >= 0; norms--) { /* with them, or without */
        struct cuda_node *info = &p->info[n - base];
        bool good = true;
        for (int i = 0; i < 2; i++) {
            if (!norms) norm[i] = NULL;
            p->info[rope[i] - base].elsewhere = true;
            if (norm[i]) p->info[norm[i] - base].elsewhere = true;
        }
        for (int i = 0; i < 2; i++) good = good && inputs_stay(p, rope[i], norm[i], n);
        for (int i = 0; i < 2; i++) {
            info->rope[i] = good ? rope[i] : NULL;
            info->norm[i] = good ? norm[i] : NULL;
            p->info[rope[i] - base].elsewhere = good;
            if (norm[i]) p->info[norm[i] - base].elsewhere = good;
        }
        if (good) return;
    }
}

/* ---- a product, and what it is added to ---- */

static void fuse_add(struct device_plan *p, const struct use *use, uint32_t i) {
    const struct graph *g = p->graph;
    const struct node *n = &g->node[i], *add = n + 1;
    if (i + 1 == g->nodes || n->op != OP_linear || n->outputs != 1 || !cuda_is_halving(n) ||
        add->op != OP_add)
        return;
    value_id out = n->out[0], sum = add->out[0];
    if ((add->in[0] == out) == (add->in[1] == out) || use[out].readers != 1 || is_output(g, out))
        return;
    /* Each element is read and written by one thread. */
    value_id other = add->in[add->in[0] == out];
    const struct value *a = &g->value[other], *b = &g->value[out], *y = &g->value[sum];
    if (a->cols != y->cols || b->cols != y->cols || a->rows != y->rows || b->rows != y->rows)
        return;
    if (p->layout.offset[other] != p->layout.offset[sum] && overlap(p, other, sum)) return;
    p->info[i].add = add;
    p->info[i + 1].elsewhere = true;
}

/* ---- all ---- */

bool cuda_fuse(struct device_plan *p) {
    const struct graph *g = p->graph;
    struct use *use = arena_array(&p->arena, g->values + 1, sizeof *use);
    if (!use) return false;
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        for (uint32_t k = 0; k < n->outputs; k++) use[n->out[k]].maker = n;
        for (uint32_t k = 0; k < n->inputs; k++)
            if (n->in[k] != NO_VALUE) use[n->in[k]].readers++;
    }
    fuse_halves(p);
    for (uint32_t i = 0; i < g->nodes; i++)
        if (g->node[i].op == OP_attention) fuse_rope(p, use, &g->node[i]);
    for (uint32_t i = 0; i < g->nodes; i++) fuse_add(p, use, i);
    return true;
}
