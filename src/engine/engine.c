/* SPDX-License-Identifier: Apache-2.0
 * engine.c: opening: model, devices, weights, KV memory, plans; see engine.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
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
    uint32_t usual = e->type->step_tokens ? e->type->step_tokens : STEP_TOKENS;
    e->step_tokens = o->step_tokens ? o->step_tokens : usual;
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

static ob_status open_kv(struct engine *e, ob_error *error) {
    for (uint32_t i = 0; i < e->groups; i++) {
        uint64_t pages = memory_pages(e, i, e->capacity);
        ob_status s = engine_parts_open_kv(e, i, pages, error);
        if (s != OB_OK) return s;
        if (!pages_init(&e->group[i].pages, (uint32_t)pages))
            return error_memory(error, "page tables", pages * 4);
    }
    return OB_OK;
}

static ob_status open_step(struct engine *e, ob_error *error) {
    e->id = arena_array(&e->arena, e->step_tokens, sizeof *e->id);
    e->pos = arena_array(&e->arena, e->step_tokens, sizeof *e->pos);
    e->row = arena_array(&e->arena, e->step_logits, sizeof *e->row);
    e->step_seq = arena_array(&e->arena, e->parallel, sizeof *e->step_seq);
    if (!e->id || !e->pos || !e->row || !e->step_seq)
        return error_memory(error, "a step", e->step_tokens);
    return engine_parts_prepare(e, error);
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
    if (s == OB_OK) s = engine_parts_open(e, options, error);
    return s == OB_OK ? memory_plan(e, options, error) : s;
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
static void place(const struct part *p, const struct node *n, uint32_t i, engine_place_fn *row,
                  void *user) {
    char kernel[80], run[120];
    p->type->kernel(p->device, n, i, kernel, sizeof kernel);
    snprintf(run, sizeof run, "%s (%s)", op_name(n->op), kernel);
    for (int bias = 0; bias < 2; bias++) {
        const struct weight *w = bias ? n->bias[i] : n->weight[i];
        if (!w) continue;
        row(user, &(ob_placement){.tensor = w->name,
                                  .format = w->quant->name,
                                  .bytes = weight_bytes(w),
                                  .device = p->type->name,
                                  .kernel = run});
    }
}

ob_status engine_placement(const struct source *source, const ob_engine_options *options,
                           engine_place_fn *row, void *user, ob_error *error) {
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    ob_status s = plan(e, source, options, true, error);
    for (uint32_t k = 0; s == OB_OK && k < e->parts; k++)
        for (uint32_t i = 0; i < e->part[k].graph->nodes; i++) {
            const struct node *n = &e->part[k].graph->node[i];
            for (uint32_t w = 0; w < NODE_OUTPUTS; w++)
                if (n->weight[w]) place(&e->part[k], n, w, row, user);
        }
    engine_close(&e);
    return s;
}

ob_status engine_open(const struct source *source, const ob_engine_options *options,
                      struct engine **out, ob_error *error) {
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an engine", sizeof *e);
    ob_status s = plan(e, source, options, false, error);
    if (s == OB_OK) s = engine_parts_bind(e, options, error);
    if (s == OB_OK) s = open_kv(e, error);
    if (s == OB_OK) s = open_step(e, error);
    if (s != OB_OK) engine_close(&e);
    *out = e;
    return s;
}

void engine_close(struct engine **engine) {
    struct engine *e = *engine;
    if (!e) return;
    engine_parts_close(e);
    for (uint32_t i = 0; e->group && i < e->groups; i++) pages_close(&e->group[i].pages);
    model_close(&e->model);
    arena_free(&e->arena);
    free(e);
    *engine = NULL;
}
