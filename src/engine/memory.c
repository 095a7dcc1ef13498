/* SPDX-License-Identifier: Apache-2.0
 * memory.c: how many tokens the KV memory is to hold, what a page takes, and how many layers a
 * device has room for. */
#include "base/error.h"
#include "engine/internal.h"

/* Groups of windows or chunks never need more than all sequences' windows and one step; state
 * groups have a page a sequence and snapshot. */
uint64_t memory_pages(const struct engine *e, uint32_t g, uint64_t tokens) {
    const struct cache_group *group = &e->model->graph.group[g];
    if (group->kind == CACHE_STATE) return (uint64_t)e->parallel * (1 + e->snapshots);
    uint64_t pages = (tokens + PAGE_TOKENS - 1) / PAGE_TOKENS;
    if (group->every > 1 && pages > 0) /* each sequence's last one may be nearly empty */
        pages = pages / group->every + e->parallel;
    if (group->kind != CACHE_FULL) {
        uint64_t each = ((uint64_t)group->window + e->step_tokens) / PAGE_TOKENS + 2;
        if (pages > each * e->parallel) pages = each * e->parallel;
    }
    return pages;
}

size_t memory_page_bytes(const struct engine *e, const struct cache_group *g) {
    if (g->kind == CACHE_STATE) return (size_t)g->layers * g->state_floats * sizeof(float);
    return (size_t)g->layers * PAGE_TOKENS * g->kv_heads *
           kv_position_bytes(e->kv_type, g->k_dim, g->v_dim);
}

uint64_t memory_kv(const struct engine *e, const struct graph *g, uint64_t tokens) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->groups; i++)
        bytes += memory_pages(e, i, tokens) * memory_page_bytes(e, &g->group[i]);
    return bytes;
}

/* Does a node of [from, to) use it? */
bool memory_uses(const struct engine *e, uint32_t from, uint32_t to, const struct weight *w) {
    for (uint32_t i = from; i < to; i++)
        for (uint32_t k = 0; k < NODE_OUTPUTS; k++)
            if (e->model->graph.node[i].weight[k] == w || e->model->graph.node[i].bias[k] == w)
                return true;
    return false;
}

uint64_t memory_weights(const struct engine *e, uint32_t from, uint32_t to) {
    uint64_t bytes = 0;
    if (from == 0 && to == e->model->graph.nodes) return e->model->weight_bytes;
    for (uint32_t i = 0; i < e->model->weights; i++)
        if (memory_uses(e, from, to, e->model->weight[i]))
            bytes += weight_bytes(e->model->weight[i]);
    return bytes;
}

/* Of each group in the part's pages. */
ob_status memory_pages_open(struct engine *e, struct part *p, ob_error *error) {
    p->buffer = arena_array(&e->arena, p->graph->groups + 1, sizeof(struct device_buffer *));
    p->page_bytes = arena_array(&e->arena, p->graph->groups + 1, sizeof *p->page_bytes);
    if (!p->buffer || !p->page_bytes) return error_memory(error, "KV tables", 0);
    for (uint32_t i = 0; i < p->graph->groups; i++)
        p->page_bytes[i] = memory_page_bytes(e, &p->graph->group[i]);
    return OB_OK;
}

/* ---- how many layers fit ---- */

/* What a step of the whole model takes of a device: if it cannot say, twice what the values take,
 * for what else kernels need. */
static uint64_t step_bytes(struct engine *e, const struct part *p) {
    const struct graph *g = &e->model->graph;
    struct part whole = {.type = p->type, .device = p->device, .graph = g};
    struct arena arena = ARENA_INIT;
    uint64_t bytes, *none = arena_array(&arena, g->groups + 1, sizeof *none);
    if (p->type->plan_memory && none && memory_pages_open(e, &whole, NULL) == OB_OK)
        bytes = fits_steps(e, &whole, none);
    else bytes = 2 * graph_plan_make(g, &arena, e->step_tokens, e->step_logits).bytes;
    arena_free(&arena);
    return bytes;
}

/* What nodes from `from` on take of a device: weights, the states and `tokens` of KV memory. */
static uint64_t needs(const struct engine *e, const struct part *p, uint32_t from,
                      uint64_t tokens) {
    const struct graph *g = &e->model->graph;
    uint64_t bytes = p->type->weight_memory ? fits_weights(e, p, from, g->nodes)
                                            : memory_weights(e, from, g->nodes);
    for (uint32_t i = 0; i < g->caches; i++) {
        struct cache_group one = g->group[g->cache[i].group];
        one.layers = 1;
        if (g->cache[i].node >= from)
            bytes += memory_pages(e, g->cache[i].group, tokens) * memory_page_bytes(e, &one);
    }
    return bytes;
}

uint32_t memory_cut(const struct engine *e, uint32_t n) {
    uint32_t layers = e->model->hp.layers;
    return n > layers ? 0 : graph_layer_start(&e->model->graph, (int32_t)(layers + 1 - n));
}

uint32_t memory_layers(struct engine *e, const ob_engine_options *o, const struct part *part) {
    enum { TOKENS = 8192, RESERVE = 256 << 20 };
    uint32_t layers = e->model->hp.layers;
    uint32_t tokens = o->context ? o->context : model_positions(e->model);
    uint64_t left, total, step = step_bytes(e, part);
    part->type->memory(part->device, &left, &total);
    if (!o->context && tokens > TOKENS) tokens = TOKENS;
    for (uint32_t n = layers + 1; n > 0; n--) {
        uint32_t from = memory_cut(e, n);
        if ((from == 0 || graph_may_cut(&e->model->graph, from)) &&
            needs(e, part, from, tokens) + step + RESERVE <= left)
            return n;
    }
    return 0;
}

/* ---- how many tokens fit ---- */

/* What a device may take: `limit` of all, and of each what is free there. */
struct budget { uint64_t all, each[PARTS_MAX]; };

static bool within(const struct engine *e, const struct budget *b, uint64_t tokens,
                   uint32_t times) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < e->parts; i++) {
        uint64_t bytes = times * memory_kv(e, e->part[i].graph, tokens);
        if (bytes > b->each[i]) return false;
        all += bytes;
    }
    return all <= b->all;
}

/* The most tokens whose pages fit, in whole pages; never more than every sequence can use. */
static uint64_t fit(const struct engine *e, const struct budget *budget) {
    uint64_t low = 0, high = ((uint64_t)e->context + PAGE_TOKENS - 1) / PAGE_TOKENS * e->parallel;
    while (low < high) {
        uint64_t mid = (low + high + 1) / 2;
        if (within(e, budget, mid * PAGE_TOKENS, 1)) low = mid;
        else high = mid - 1;
    }
    return low * PAGE_TOKENS;
}

/* As many snapshots of states as half of the memory holds. */
static void choose_snapshots(struct engine *e, const struct budget *budget) {
    struct budget half = {.all = budget->all / 2};
    for (uint32_t i = 0; i < e->parts; i++) half.each[i] = budget->each[i] / 2;
    uint32_t n = 0;
    e->snapshots = 0;
    if (memory_kv(e, &e->model->graph, 0) == 0) return; /* states alone */
    while (n < STATE_SNAPSHOTS && within(e, &half, 0, n + 2)) n++;
    e->snapshots = n;
}

/* The context that was asked for, or the model's. */
static ob_status choose_context(struct engine *e, const ob_engine_options *o, ob_error *error) {
    uint32_t most = model_positions(e->model);
    e->context = o->context ? o->context : e->model->hp.context;
    if (o->context > most) {
        ob_status s = error_set(error, OB_ERR_LIMIT,
                                "%u tokens are asked for, this model has %u positions", o->context,
                                most);
        error_at(error, NULL, "context", OB_NO_OFFSET);
        return s;
    }
    if (e->context > most) e->context = most;
    return OB_OK;
}

/* What the KV memory may take of the part's device. */
static uint64_t memory_left(const struct engine *e, const struct part *p, const uint64_t *none) {
    uint64_t left, total, weights = memory_weights(e, p->from, p->to);
    uint64_t copied = e->model->copied_bytes;
    /* Mapped weights are not resident yet but will be: they do not count as free. */
    weights = weights > copied ? weights - copied : 0; /* tables of positions are copies alone */
    if (p->type->weight_memory)
        weights = fits_weights(e, p, p->from, p->to) + fits_steps(e, p, none);
    p->type->memory(p->device, &left, &total);
    return left > weights ? left - weights : 0;
}

/* none: a zero for each group. */
static struct budget budget_of(const struct engine *e, const ob_engine_options *o,
                               const uint64_t *none) {
    struct budget b = {.all = o->kv_memory ? o->kv_memory : UINT64_MAX};
    for (uint32_t i = 0; i < e->parts; i++)
        b.each[i] = o->kv_memory ? UINT64_MAX : memory_left(e, &e->part[i], none) / 2;
    return b;
}

/* For messages. */
static unsigned long long total(const struct engine *e, const struct budget *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < e->parts && b->all == UINT64_MAX; i++) sum += b->each[i];
    return b->all == UINT64_MAX ? sum : b->all;
}

ob_status memory_plan(struct engine *e, const ob_engine_options *o, ob_error *error) {
    const struct graph *g = &e->model->graph;
    ob_status context = choose_context(e, o, error);
    if (context != OB_OK) return context;
    e->length_matters = graph_depends_on_length(g);
    e->groups = g->groups;
    e->group = arena_array(&e->arena, g->groups + 1, sizeof *e->group);
    uint64_t *none = arena_array(&e->arena, g->groups + 1, sizeof *none);
    if (!e->group || !none) return error_memory(error, "KV tables", 0);
    for (uint32_t i = 0; i < e->parts; i++) {
        ob_status s = memory_pages_open(e, &e->part[i], error);
        if (s != OB_OK) return s;
    }
    const struct budget budget = budget_of(e, o, none);
    choose_snapshots(e, &budget);
    e->capacity = fit(e, &budget);
    if (e->capacity == 0) {
        ob_status full = fits_check(e, error); /* weights alone are too much */
        if (full != OB_OK) return full;
        ob_status s = error_set(error, OB_ERR_LIMIT,
                                "%llu bytes hold no page of %d tokens (%llu bytes)",
                                total(e, &budget), PAGE_TOKENS,
                                (unsigned long long)memory_kv(e, g, PAGE_TOKENS));
        error_at(error, NULL, "kv_memory", OB_NO_OFFSET);
        return s;
    }
    if (o->context && e->capacity < o->context) {
        ob_status s =
            error_set(error, OB_ERR_LIMIT, "%u tokens do not fit in the KV memory, %llu do",
                      o->context, (unsigned long long)e->capacity);
        error_at(error, NULL, "context", OB_NO_OFFSET);
        return s;
    }
    if (e->context > e->capacity) e->context = (uint32_t)e->capacity;
    return fits_check(e, error);
}
