/* SPDX-License-Identifier: Apache-2.0
 * engine.c: opening: model, device, weights, KV memory, plan; see engine.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/topology.h"
#include "engine/internal.h"

enum {
    STEP_TOKENS = 512,
    WHOLE_STEP = 8192,
    PARALLEL = 8,
    STEP_LOGITS = 128,
    MOST_PARALLEL = 4096,
    MOST_STEP = 1 << 16
};

const struct model *engine_model(const struct engine *e) { return e->model; }
const char *engine_device(const struct engine *e) { return e->describe; }
uint32_t engine_threads(const struct engine *e) { return e->threads; }
uint32_t engine_context(const struct engine *e) { return e->context; }
uint64_t engine_capacity(const struct engine *e) { return e->capacity; }
uint32_t engine_step_tokens(const struct engine *e) { return e->step_tokens; }
uint32_t engine_step_logits(const struct engine *e) { return e->step_logits; }
uint32_t engine_parallel(const struct engine *e) { return e->parallel; }
struct kv_types engine_kv_types(const struct engine *e) { return e->kv_type; }
const char *engine_kv_text(const struct engine *e) { return e->kv_text; }

bool engine_device_at(size_t i, ob_device *out) {
    for (size_t type = 0; type < device_count; type++) {
        *out = (ob_device){.name = device_list[type]->name};
        device_list[type]->enumerate(0, out);
        uint32_t entries = out->count ? out->count : 1;
        if (i >= entries) {
            i -= entries;
            continue;
        }
        if (i > 0) {
            *out = (ob_device){.name = device_list[type]->name, .index = (uint32_t)i};
            device_list[type]->enumerate((uint32_t)i, out);
        }
        return true;
    }
    *out = (ob_device){0};
    return false;
}

static ob_status refuse_device(ob_error *error, const char *name) {
    char known[256] = "auto";
    for (size_t i = 0; i < device_count; i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, ", %s", device_list[i]->name);
    }
    ob_status s =
        error_set(error, OB_ERR_ARGUMENT,
                  "unknown device \"%.64s\"; there are: %s; and, with a number, such as "
                  "cuda:0",
                  name, known);
    error_at(error, NULL, "device", OB_NO_OFFSET);
    return s;
}

static ob_status refuse(ob_error *error, const char *option, const char *value) {
    ob_status s = error_set(error, OB_ERR_ARGUMENT, "unknown value \"%s\"", value);
    error_at(error, NULL, option, OB_NO_OFFSET);
    return s;
}

static ob_status read_options(struct engine *e, const ob_engine_options *o, ob_error *error) {
    const char *device =
        o->device && strcmp(o->device, "auto") != 0 ? o->device : device_list[0]->name;
    e->type = device_find_at(device, &e->device_index);
    if (!e->type) return refuse_device(error, device);
    enum kv_type kv = strcmp(e->type->name, "ref") == 0 ? KV_f32 : KV_f16;
    if (o->kv_type && !kv_find(o->kv_type, &kv)) return refuse(error, "kv_type", o->kv_type);
    e->kv_type = (struct kv_types){.k = kv, .v = kv};
    if (o->kv_type_k && !kv_find(o->kv_type_k, &e->kv_type.k))
        return refuse(error, "kv_type_k", o->kv_type_k);
    if (o->kv_type_v && !kv_find(o->kv_type_v, &e->kv_type.v))
        return refuse(error, "kv_type_v", o->kv_type_v);
    if (o->weights && strcmp(o->weights, "q8_0") != 0) return refuse(error, "weights", o->weights);
    e->weights = o->weights ? quant_list[QUANT_q8_0] : NULL;
    e->parallel = o->parallel ? o->parallel : PARALLEL;
    e->step_tokens = o->step_tokens ? o->step_tokens : STEP_TOKENS;
    if (e->parallel > MOST_PARALLEL || e->step_tokens > MOST_STEP)
        return error_set(error, OB_ERR_ARGUMENT, "parallel is at most %d, step tokens at most %d",
                         MOST_PARALLEL, MOST_STEP);
    if (e->step_tokens < e->parallel) e->step_tokens = e->parallel;
    e->step_logits = o->step_logits ? o->step_logits : STEP_LOGITS;
    if (e->step_logits > e->step_tokens) e->step_logits = e->step_tokens;
    if (e->step_logits < e->parallel) e->step_logits = e->parallel;
    return OB_OK;
}

/* What depends on the model: see engine.h on those that read a sequence at once. */
static void settle_options(struct engine *e, const ob_engine_options *o) {
    if (e->model->graph.whole) {
        uint32_t context = o->context ? o->context : e->model->hp.context;
        e->kv_type = (struct kv_types){.k = KV_f32, .v = KV_f32};
        if (!o->step_tokens && e->step_tokens < context)
            e->step_tokens = context < WHOLE_STEP ? context : WHOLE_STEP;
    }
    bool same = e->kv_type.k == e->kv_type.v;
    snprintf(e->kv_text, sizeof e->kv_text, "%s%s%s", kv_name(e->kv_type.k), same ? "" : "+",
             same ? "" : kv_name(e->kv_type.v));
}

static ob_status choose_threads(const ob_engine_options *o, struct topology_choice *on,
                                ob_error *error) {
    struct topology *topology;
    const struct topology_want want = {
        .threads = o->threads, .cpu_mask = o->cpu_mask, .numa = o->numa};
    ob_status s = topology_open(NULL, NULL, &topology, error);
    if (s == OB_OK) s = topology_choose(topology, &want, on, error);
    topology_close(&topology);
    return s;
}

static ob_status open_device(struct engine *e, const ob_engine_options *o, ob_error *error) {
    struct topology_choice on = {0};
    ob_status s = choose_threads(o, &on, error);
    struct device_options options = {.index = e->device_index, .threads = on.threads, .cpu = on.cpu,
                                     .cpu_isa = o->cpu_isa, .plain = o->no_graphs};
    if (s == OB_OK) s = e->type->open(&options, &e->device, error);
    free(on.cpu);
    if (s != OB_OK) return s;
    e->threads = options.threads;
    e->type->describe(e->device, e->describe, sizeof e->describe);
    for (uint32_t i = 0; i < e->model->graph.nodes; i++) {
        const struct node *n = &e->model->graph.node[i];
        char reason[160] = "";
        if (e->type->supports(e->device, &e->model->graph, n, reason, sizeof reason)) continue;
        s = error_set(error, OB_ERR_UNSUPPORTED, "device %s does not run %s of layer %d: %s",
                      e->type->name, op_name(n->op), (int)n->layer, reason);
        error_at(error, source_path(e->model->source), n->weight[0] ? n->weight[0]->name : NULL,
                 OB_NO_OFFSET);
        return s;
    }
    return OB_OK;
}

static ob_status bind(struct engine *e, const ob_engine_options *o, ob_error *error) {
    struct source_load load = {.copy = o->no_mmap, .lock = o->mlock, .progress = o->progress,
                               .user = o->progress_user};
    ob_status status = source_load(e->model->source, &load, error);
    if (status != OB_OK) return status;
    for (; e->bound < e->model->weights; e->bound++) {
        struct weight *w = e->model->weight[e->bound];
        ob_status s = e->type->bind_weight(e->device, w, error);
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

/* Pages of group g when the full groups hold `tokens`: groups of windows or chunks never need more
 * than all sequences' windows and one step; state groups have a page a sequence and snapshot. */
static uint64_t group_pages(const struct engine *e, uint32_t g, uint64_t tokens) {
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

static uint64_t kv_bytes(const struct engine *e, uint64_t tokens) {
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < e->groups; g++)
        bytes += group_pages(e, g, tokens) * e->group[g].page_bytes;
    return bytes;
}

/* The most tokens whose pages fit, in whole pages; never more than every sequence can use. */
static uint64_t fit(const struct engine *e, uint64_t memory) {
    uint64_t low = 0, high = ((uint64_t)e->context + PAGE_TOKENS - 1) / PAGE_TOKENS * e->parallel;
    while (low < high) {
        uint64_t mid = (low + high + 1) / 2;
        if (kv_bytes(e, mid * PAGE_TOKENS) <= memory)
            low = mid;
        else
            high = mid - 1;
    }
    return low * PAGE_TOKENS;
}

static size_t page_bytes(const struct engine *e, const struct cache_group *g) {
    if (g->kind == CACHE_STATE) return (size_t)g->layers * g->state_floats * sizeof(float);
    return (size_t)g->layers * PAGE_TOKENS * g->kv_heads *
           kv_position_bytes(e->kv_type, g->k_dim, g->v_dim);
}

/* As many snapshots of states as half of the memory holds. */
static void choose_snapshots(struct engine *e, uint64_t memory) {
    e->snapshots = 0;
    uint64_t one = kv_bytes(e, 0); /* states alone, then one more of each at a time */
    if (one == 0) return;
    while (e->snapshots < STATE_SNAPSHOTS && one * (e->snapshots + 2) <= memory / 2)
        e->snapshots++;
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

/* How many tokens the KV memory is to hold; takes none yet. */
static ob_status size_kv(struct engine *e, const ob_engine_options *o, ob_error *error) {
    const struct graph *g = &e->model->graph;
    ob_status context = choose_context(e, o, error);
    if (context != OB_OK) return context;
    e->length_matters = graph_depends_on_length(g);
    e->groups = g->groups;
    e->group = arena_array(&e->arena, g->groups + 1, sizeof *e->group);
    e->group_buffer = arena_array(&e->arena, g->groups + 1, sizeof(struct device_buffer *));
    e->group_page_bytes = arena_array(&e->arena, g->groups + 1, sizeof(size_t));
    if (!e->group || !e->group_buffer || !e->group_page_bytes)
        return error_memory(error, "KV tables", 0);
    for (uint32_t i = 0; i < g->groups; i++)
        e->group_page_bytes[i] = e->group[i].page_bytes = page_bytes(e, &g->group[i]);
    uint64_t free_bytes, total;
    e->type->memory(e->device, &free_bytes, &total);
    /* Mapped weights are not resident yet but will be: they do not count as free. */
    uint64_t all = e->model->weight_bytes, copied = e->model->copied_bytes;
    uint64_t weights = all > copied ? all - copied : 0; /* tables of positions are copies alone */
    uint64_t *group_bytes = arena_array(&e->arena, g->groups + 1, sizeof *group_bytes);
    if (!group_bytes) return error_memory(error, "KV tables", 0);
    if (e->type->weight_memory) /* a device's own memory: what it makes of them, and its steps */
        weights = engine_device_weights(e) + engine_device_plan(e, group_bytes);
    if (e->type->weight_memory && weights > free_bytes)
        return engine_check_memory(e, group_bytes, error);
    uint64_t left = free_bytes > weights ? free_bytes - weights : 0;
    uint64_t memory = o->kv_memory ? o->kv_memory : left / 2;
    choose_snapshots(e, memory);
    e->capacity = fit(e, memory);
    if (e->capacity == 0) {
        ob_status s = error_set(
            error, OB_ERR_LIMIT, "%llu bytes hold no page of %d tokens (%llu bytes)",
            (unsigned long long)memory, PAGE_TOKENS, (unsigned long long)kv_bytes(e, PAGE_TOKENS));
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
    for (uint32_t i = 0; i < g->groups; i++)
        group_bytes[i] = group_pages(e, i, e->capacity) * e->group[i].page_bytes;
    return engine_check_memory(e, group_bytes, error);
}

static ob_status open_kv(struct engine *e, ob_error *error) {
    for (uint32_t i = 0; i < e->groups; i++) {
        uint64_t pages = group_pages(e, i, e->capacity);
        ob_status s =
            e->type->alloc(e->device, pages * e->group[i].page_bytes, &e->group[i].buffer, error);
        if (s != OB_OK) return s;
        e->group_buffer[i] = e->group[i].buffer;
        if (!pages_init(&e->group[i].pages, (uint32_t)pages))
            return error_memory(error, "page tables", pages * 4);
    }
    return OB_OK;
}

static ob_status open_step(struct engine *e, ob_error *error) {
    struct device_kv kv = {
        .type = e->kv_type, .group = e->group_buffer, .page_bytes = e->group_page_bytes};
    e->id = arena_array(&e->arena, e->step_tokens, sizeof *e->id);
    e->pos = arena_array(&e->arena, e->step_tokens, sizeof *e->pos);
    e->row = arena_array(&e->arena, e->step_logits, sizeof *e->row);
    e->step_seq = arena_array(&e->arena, e->parallel, sizeof *e->step_seq);
    if (!e->id || !e->pos || !e->row || !e->step_seq)
        return error_memory(error, "a step", e->step_tokens);
    return e->type->prepare(e->device, &e->model->graph, &kv, e->step_tokens, e->step_logits,
                            &e->plan, error);
}

/* only: nothing is going to run. */
static ob_status plan(struct engine *e, const struct source *source,
                      const ob_engine_options *options, bool only, ob_error *error) {
    ob_status s = read_options(e, options, error);
    const struct model_options want = {.weights = e->weights, .plan = only};
    if (s == OB_OK) s = model_open(source, &want, &e->model, error);
    if (s != OB_OK) return s;
    settle_options(e, options);
    s = model_check_kv(e->model, e->kv_type, error);
    if (s == OB_OK) s = open_device(e, options, error);
    return s == OB_OK ? size_kv(e, options, error) : s;
}

ob_status engine_check(const struct source *source, const ob_engine_options *options,
                       ob_error *error) {
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    ob_status s = plan(e, source, options, true, error);
    engine_close(&e);
    return s;
}

/* One row for weight i of a node, one for its bias. */
static void place(const struct engine *e, const struct node *n, uint32_t i, engine_place_fn *row,
                  void *user) {
    char kernel[80], run[120];
    e->type->kernel(e->device, n, i, kernel, sizeof kernel);
    snprintf(run, sizeof run, "%s (%s)", op_name(n->op), kernel);
    for (int bias = 0; bias < 2; bias++) {
        const struct weight *w = bias ? n->bias[i] : n->weight[i];
        if (!w) continue;
        row(user, &(ob_placement){.tensor = w->name,
                                  .format = w->quant->name,
                                  .bytes = weight_bytes(w),
                                  .device = e->type->name,
                                  .kernel = run});
    }
}

ob_status engine_placement(const struct source *source, const ob_engine_options *options,
                           engine_place_fn *row, void *user, ob_error *error) {
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    ob_status s = plan(e, source, options, true, error);
    for (uint32_t i = 0; s == OB_OK && i < e->model->graph.nodes; i++) {
        const struct node *n = &e->model->graph.node[i];
        for (uint32_t w = 0; w < NODE_OUTPUTS; w++)
            if (n->weight[w]) place(e, n, w, row, user);
    }
    engine_close(&e);
    return s;
}

ob_status engine_open(const struct source *source, const ob_engine_options *options,
                      struct engine **out, ob_error *error) {
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    ob_status s = plan(e, source, options, false, error);
    if (s == OB_OK) s = bind(e, options, error);
    if (s == OB_OK) s = open_kv(e, error);
    if (s == OB_OK) s = open_step(e, error);
    if (s != OB_OK) engine_close(&e);
    *out = e;
    return s;
}

void engine_close(struct engine **engine) {
    struct engine *e = *engine;
    if (!e) return;
    if (e->plan) e->type->release(e->device, &e->plan);
    for (uint32_t i = 0; e->group && i < e->groups; i++) {
        if (e->group[i].buffer) e->type->free(e->device, &e->group[i].buffer);
        pages_close(&e->group[i].pages);
    }
    for (uint32_t i = 0; i < e->bound; i++) e->type->unbind_weight(e->device, e->model->weight[i]);
    if (e->device) e->type->close(&e->device);
    model_close(&e->model);
    arena_free(&e->arena);
    free(e);
    *engine = NULL;
}
