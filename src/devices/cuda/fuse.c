/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse.c: nodes that share a kernel, found once a plan:
 *     norm or glu, then linear    the first writes the halved rows that the second multiplies;
 *                                 linears of one input halve it once
 *     rope of q, rope of k, attention    one kernel turns both and stores k and v
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

/* Do the inputs of a rope still lie there when `at`, a later node, runs? `q`: the turned queries,
 * which are then written; `k`: the turned keys, which are not. */
static bool inputs_stay(const struct device_plan *p, const struct node *rope, const struct node *at,
                        value_id q, value_id k) {
    for (int i = 0; i < 2; i++) {
        if (overlap(p, rope->in[i], q)) return false;
        for (const struct node *n = rope + 1; n < at; n++)
            for (uint32_t o = 0; o < n->outputs; o++)
                if (n->out[o] != k && overlap(p, rope->in[i], n->out[o])) return false;
    }
    return true;
}

static const struct node *lone_rope(const struct device_plan *p, const struct use *use,
                                    value_id v) {
    const struct graph *g = p->graph;
    const struct node *n = use[v].maker;
    bool output = v == g->logits || v == g->embedding || v == g->pooled;
    bool good = n && n->op == OP_rope && use[v].readers == 1 && !output &&
                n->u.rope.head_dim <= ROPE_STORE_MAX;
    return good ? n : NULL;
}

static void fuse_rope(struct device_plan *p, const struct use *use, const struct node *n) {
    if (n->u.attention.shares || n->u.attention.beside) return;
    const struct node *q = lone_rope(p, use, n->in[0]), *k = lone_rope(p, use, n->in[1]);
    if (!q || !k || n->in[2] == NO_VALUE || k->u.rope.heads != n->u.attention.kv_heads ||
        p->graph->group[p->graph->cache[n->u.attention.cache].group].v_dim == 0)
        return;
    if (!inputs_stay(p, q, n, n->in[0], n->in[1]) || !inputs_stay(p, k, n, n->in[0], n->in[1]))
        return;
    struct cuda_node *info = &p->info[n - p->graph->node];
    info->rope[0] = q;
    info->rope[1] = k;
    p->info[q - p->graph->node].later = true;
    p->info[k - p->graph->node].later = true;
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
    return true;
}
