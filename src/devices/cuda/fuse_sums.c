/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse_sums.c: combine, add, norm: the kernel of a norm of whole rows adds up what experts gave and
 * the residual stream, keeps the sum and norms it; or the last two of them. Found once a plan,
 * behind fuse.c. The arithmetic is that of the nodes in their order.
 *
 * What a combine reads would be overwritten by then: graph_plan_make() gives its place to the sum.
 * So the rows of experts and the route lie behind all other values, where those of the next layer
 * follow them. */
#include "devices/cuda/cuda.h"

bool cuda_is_norm_row(const struct device_plan *p, const struct node *n) {
    uint32_t cols = p->graph->value[n->in[0]].cols;
    bool kind = n->u.norm.kind == NORM_RMS || n->u.norm.kind == NORM_LAYER;
    /* Narrower ones are norms of heads, too, which another kernel does alike (fuse.c). */
    return n->op == OP_norm && kind && n->u.norm.width == cols && cols % 4 == 0 &&
           cols > ROPE_NORM_MAX;
}

void cuda_add_args(const struct device_plan *p, const struct cuda_node *info,
                   struct cuda_norm_row *args) {
    const struct node *add = info->add, *combine = info->combine;
    bool second = combine && add->in[1] == combine->out[0];
    args->x = cuda_value(p, combine ? combine->in[0] : add->in[0]);
    args->plus = cuda_value(p, add->in[!second]);
    args->sum = cuda_value(p, add->out[0]);
    if (!combine) return;
    args->route = cuda_value(p, combine->in[1]);
    args->pair = p->groups.pair;
    args->used = cuda_cols(p, combine->in[1]) / 2;
}

static size_t bytes_of(const struct device_plan *p, value_id v) {
    const struct value *value = &p->graph->value[v];
    return value_rows(value, p->tokens, p->logits, p->tokens) * value->cols * sizeof(float);
}

/* May the kernel write v where it reads `other`? A thread reads its part of a row before it writes
 * it, so only if they lie one on the other, row by row. */
static bool may_write(const struct device_plan *p, value_id v, value_id other) {
    const struct value *a = &p->graph->value[v], *b = &p->graph->value[other];
    size_t at = p->layout.offset[v], of = p->layout.offset[other];
    bool overlap = at < of + bytes_of(p, other) && of < at + bytes_of(p, v);
    return !overlap || (at == of && a->cols == b->cols && a->rows == b->rows);
}

static bool may_write_both(const struct device_plan *p, const struct node *norm,
                           const struct node *add, value_id other) {
    return may_write(p, norm->out[0], other) && may_write(p, add->out[0], other);
}

/* ---- what is combined lies behind ---- */

static size_t round64(size_t n) { return (n + 63) & ~(size_t)63; }

size_t cuda_sums_bytes(const struct device_plan *p) {
    size_t rows = 0, route = 0;
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        if (n->op != OP_combine) continue;
        if (bytes_of(p, n->in[0]) > rows) rows = bytes_of(p, n->in[0]);
        if (bytes_of(p, n->in[1]) > route) route = bytes_of(p, n->in[1]);
    }
    return rows ? 64 + round64(rows) + round64(route) : 0;
}

/* The nodes where values are made, and read last. */
struct lives {
    uint32_t *made, *last;
    size_t behind; /* where the other values end */
    uint32_t free; /* from this node on there is nothing behind */
};

/* Of a value that only nodes of the graph before the norm read. */
static bool ends_before(const struct device_plan *p, const struct lives *l, value_id v,
                        uint32_t norm) {
    const struct graph *g = p->graph;
    bool stays = v == g->logits || v == g->embedding || v == g->pooled || g->value[v].kept ||
                 g->value[v].given;
    return !stays && l->last[v] < norm;
}

/* The combine right before the add, which alone reads it; NULL: none. */
static const struct node *lone_combine(struct device_plan *p, struct lives *l, uint32_t norm) {
    const struct graph *g = p->graph;
    if (norm < 2 || g->node[norm - 2].op != OP_combine) return NULL;
    const struct node *n = &g->node[norm - 2], *add = &g->node[norm - 1];
    value_id rows = n->in[0], route = n->in[1], out = n->out[0];
    if ((add->in[0] == out) == (add->in[1] == out) || l->last[out] != norm - 1 ||
        !ends_before(p, l, out, norm) || !ends_before(p, l, rows, norm) ||
        !ends_before(p, l, route, norm) || l->made[rows] < l->free || l->made[route] < l->free)
        return NULL;
    p->layout.offset[rows] = round64(l->behind);
    p->layout.offset[route] = round64(l->behind) + round64(bytes_of(p, rows));
    l->free = norm;
    return n;
}

static void fuse(struct device_plan *p, struct lives *l, uint32_t i) {
    const struct graph *g = p->graph;
    const struct node *norm = &g->node[i], *add = norm - 1;
    if (i == 0 || !cuda_is_norm_row(p, norm) || add->op != OP_add || p->info[i - 1].elsewhere ||
        norm->in[0] != add->out[0])
        return;
    const struct value *y = &g->value[add->out[0]];
    for (int k = 0; k < 2; k++) {
        const struct value *x = &g->value[add->in[k]];
        if (x->cols != y->cols || x->rows != y->rows) return;
    }
    const struct node *combine = lone_combine(p, l, i);
    for (int k = 0; k < 2; k++)
        if (!(combine && add->in[k] == combine->out[0]) &&
            !may_write_both(p, norm, add, add->in[k]))
            return;
    p->info[i].add = add;
    p->info[i].combine = combine;
    p->info[i - 1].elsewhere = true;
    if (combine) p->info[i - 2].elsewhere = true;
}

bool cuda_fuse_sums(struct device_plan *p) {
    const struct graph *g = p->graph;
    struct lives l = {.made = arena_array(&p->arena, g->values + 1, sizeof *l.made),
                      .last = arena_array(&p->arena, g->values + 1, sizeof *l.last),
                      .behind = p->layout.bytes};
    if (!l.made || !l.last) return false;
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        for (uint32_t k = 0; k < n->outputs; k++) l.made[n->out[k]] = i;
        for (uint32_t k = 0; k < n->inputs; k++)
            if (n->in[k] != NO_VALUE) l.last[n->in[k]] = i;
    }
    for (uint32_t i = 0; i < g->nodes; i++) fuse(p, &l, i);
    return true;
}
