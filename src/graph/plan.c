/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: places every value of a graph in one block so that values alive at the same time do not
 * overlap: in order of the nodes, first fit between the values alive now. A value lives from the
 * node that makes it (from the start, if it is given) to the last that reads it; the outputs and
 * what is kept to the end. Inputs of a node are freed after its outputs are placed, so no output
 * shares memory with an input. */
#include <stdlib.h>

#include "graph/graph.h"

struct live {
    value_id value;
    size_t from, to; /* bytes */
};

static size_t value_bytes(const struct graph *g, value_id v, uint32_t tokens, uint32_t logits) {
    size_t rows = value_rows(&g->value[v], tokens, logits, tokens);
    return (rows * g->value[v].cols * sizeof(float) + 63) & ~(size_t)63;
}

/* Inserts `bytes` at the first gap of the list, which is sorted by address. */
static size_t place(struct live *list, uint32_t *count, value_id value, size_t bytes) {
    size_t at = 0;
    uint32_t i = 0;
    while (i < *count && list[i].from - at < bytes) at = list[i++].to;
    for (uint32_t k = *count; k > i; k--) list[k] = list[k - 1];
    list[i] = (struct live){.value = value, .from = at, .to = at + bytes};
    ++*count;
    return at;
}

static void place_value(struct graph_plan *plan, const struct graph *g, value_id v, uint32_t tokens,
                        uint32_t logits, struct live *list, uint32_t *count) {
    size_t bytes = value_bytes(g, v, tokens, logits), at = place(list, count, v, bytes);
    plan->offset[v] = at;
    if (at + bytes > plan->bytes) plan->bytes = at + bytes;
}

static void drop_dead(struct live *list, uint32_t *count, const uint32_t *last, uint32_t node) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (last[list[i].value] > node) list[kept++] = list[i];
    *count = kept;
}

struct graph_plan graph_plan_make(const struct graph *g, struct arena *arena, uint32_t tokens,
                                  uint32_t logits) {
    struct graph_plan plan = {.offset = arena_array(arena, g->values + 1, sizeof *plan.offset)};
    uint32_t *last = arena_array(arena, g->values + 1, sizeof *last);
    struct live *list = arena_array(arena, g->values + 1, sizeof *list);
    if (!plan.offset || !last || !list) return (struct graph_plan){0};

    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        for (uint32_t k = 0; k < n->inputs; k++)
            if (n->in[k] != NO_VALUE) last[n->in[k]] = i;
        for (uint32_t k = 0; k < n->outputs; k++) last[n->out[k]] = i;
    }
    const value_id outputs[] = {g->logits, g->embedding, g->pooled};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        if (outputs[i] != NO_VALUE) last[outputs[i]] = g->nodes;

    for (value_id v = 0; v < g->values; v++)
        if (g->value[v].kept) last[v] = g->nodes;

    uint32_t count = 0;
    for (value_id v = 0; v < g->values; v++)
        if (g->value[v].given) place_value(&plan, g, v, tokens, logits, list, &count);
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        for (uint32_t k = 0; k < n->outputs; k++)
            place_value(&plan, g, n->out[k], tokens, logits, list, &count);
        drop_dead(list, &count, last, i);
    }
    return plan;
}
