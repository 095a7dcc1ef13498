/* SPDX-License-Identifier: Apache-2.0
 * part.c: a run of a graph's nodes as a graph of its own; see graph.h. */
#include <string.h>

#include "graph/graph.h"

static bool reads(const struct node *n, value_id v) {
    for (uint32_t k = 0; k < n->inputs; k++)
        if (n->in[k] == v) return true;
    return false;
}

/* Is what a node before `from` made read from there on? */
static bool crosses(const struct graph *g, value_id v, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        if (reads(&g->node[i], v)) return true;
    return false;
}

bool graph_may_cut(const struct graph *g, uint32_t at) {
    for (uint32_t i = at; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        if (n->op == OP_attention && n->u.attention.shares &&
            g->cache[n->u.attention.cache].node < at)
            return false;
    }
    for (uint32_t i = 0; i < at; i++)
        for (uint32_t k = 0; k < g->node[i].outputs; k++) {
            value_id v = g->node[i].out[k];
            bool given = v == g->logits || v == g->embedding || v == g->pooled;
            if (given || (g->value[v].rows != ROWS_TOKENS && crosses(g, v, at, g->nodes)))
                return false;
        }
    return true;
}

uint32_t graph_layer_start(const struct graph *g, int32_t layer) {
    uint32_t i = 0, behind = 0;
    for (; i < g->nodes; i++) {
        if (g->node[i].layer == layer) return i;
        if (g->node[i].layer >= 0) behind = i + 1;
    }
    return behind;
}

/* Slots of the caches that its nodes made, from 0 on in each group. */
static void number_slots(struct graph *part, const struct graph *g, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < g->groups; i++) part->group[i].layers = 0;
    for (uint32_t i = 0; i < g->caches; i++)
        if (g->cache[i].node >= from && g->cache[i].node < to)
            part->cache[i].slot = part->group[g->cache[i].group].layers++;
}

static value_id made_here(const struct graph *g, value_id v, uint32_t from, uint32_t to) {
    for (uint32_t i = from; v != NO_VALUE && i < to; i++)
        for (uint32_t k = 0; k < g->node[i].outputs; k++)
            if (g->node[i].out[k] == v) return v;
    return NO_VALUE;
}

static void *copy(struct arena *arena, const void *from, size_t n, size_t size) {
    void *to = arena_array(arena, n + 1, size);
    return to && n ? memcpy(to, from, n * size) : to;
}

bool graph_part(const struct graph *g, uint32_t from, uint32_t to, struct arena *arena,
                struct graph *out) {
    *out = *g;
    out->arena = arena;
    out->nodes = to - from;
    out->node = copy(arena, g->node + from, to - from, sizeof *g->node);
    out->value = copy(arena, g->value, g->values, sizeof *g->value);
    out->cache = copy(arena, g->cache, g->caches, sizeof *g->cache);
    out->group = copy(arena, g->group, g->groups, sizeof *g->group);
    if (!out->node || !out->value || !out->cache || !out->group) return false;
    number_slots(out, g, from, to);
    out->logits = made_here(g, g->logits, from, to);
    out->embedding = made_here(g, g->embedding, from, to);
    out->pooled = made_here(g, g->pooled, from, to);
    for (uint32_t i = 0; i < to; i++)
        for (uint32_t k = 0; k < g->node[i].outputs; k++) {
            value_id v = g->node[i].out[k];
            out->value[v].given = i < from && crosses(g, v, from, to);
            out->value[v].kept = i >= from && crosses(g, v, to, g->nodes);
        }
    return true;
}
