/* SPDX-License-Identifier: Apache-2.0
 * parts.c: the devices that run a model. As a rule one runs all; with `gpu_layers` the device that
 * was asked for runs the last layers and the CPU those before, and each step hands the rows of a
 * few values from the one to the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/topology.h"
#include "engine/internal.h"

/* ---- opening ---- */

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

static ob_status open_device(struct engine *e, struct part *p, const ob_engine_options *o,
                             ob_error *error) {
    struct topology_choice on = {0};
    ob_status s = choose_threads(o, &on, error);
    struct device_options options = {.index = p->type == e->type ? e->device_index : 0,
                                     .threads = on.threads,
                                     .cpu = on.cpu,
                                     .cpu_isa = o->cpu_isa,
                                     .plain = o->no_graphs};
    if (s == OB_OK) s = p->type->open(&options, &p->device, error);
    free(on.cpu);
    e->threads = options.threads;
    return s;
}

static ob_status check_nodes(const struct engine *e, const struct part *p, ob_error *error) {
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        char reason[160] = "";
        if (p->type->supports(p->device, p->graph, n, reason, sizeof reason)) continue;
        ob_status s =
            error_set(error, OB_ERR_UNSUPPORTED, "device %s does not run %s of layer %d: %s",
                      p->type->name, op_name(n->op), (int)n->layer, reason);
        error_at(error, source_path(e->model->source), n->weight[0] ? n->weight[0]->name : NULL,
                 OB_NO_OFFSET);
        return s;
    }
    return OB_OK;
}

static ob_status refuse_layers(ob_error *error, const char *format, const char *text) {
    ob_status s = error_set(error, OB_ERR_ARGUMENT, format, text);
    error_at(error, NULL, "gpu_layers", OB_NO_OFFSET);
    return s;
}

/* A number of layers; the output is one more. */
static ob_status read_layers(const struct engine *e, const ob_engine_options *o, uint32_t *out,
                             ob_error *error) {
    char *end;
    unsigned long n = strtoul(o->gpu_layers, &end, 10);
    if (o->gpu_layers[0] < '0' || o->gpu_layers[0] > '9' || *end)
        return refuse_layers(error, "\"%.64s\" is neither a number nor auto", o->gpu_layers);
    *out = n > e->model->hp.layers ? e->model->hp.layers + 1 : (uint32_t)n;
    return OB_OK;
}

/* The first node that the device runs, of its n last layers. */
static ob_status find_cut(const struct engine *e, uint32_t n, uint32_t *from, ob_error *error) {
    const struct graph *g = &e->model->graph;
    uint32_t layers = e->model->hp.layers, other = n;
    *from = n == 0 ? g->nodes : memory_cut(e, n);
    if (*from == 0 || n == 0 || graph_may_cut(g, *from)) return OB_OK;
    while (other <= layers && !graph_may_cut(g, memory_cut(e, other))) other++;
    char text[16];
    snprintf(text, sizeof text, "%u", other);
    return refuse_layers(error, "layers on both sides share a cache; the next number that can be "
                                "is %s", text);
}

static bool take_nodes(struct engine *e, struct part *p, uint32_t from, uint32_t to) {
    const struct graph *g = &e->model->graph;
    p->from = from;
    p->to = to;
    p->graph = g;
    if (from == 0 && to == g->nodes) return true;
    p->graph = &p->own;
    return graph_part(g, from, to, &e->arena, &p->own);
}

/* "cuda, H200: layers 12 to 27 and the output; cpu, avx512: the rest" */
static void describe(struct engine *e) {
    const struct part *last = &e->part[e->parts - 1];
    last->type->describe(last->device, e->describe, sizeof e->describe);
    if (e->parts == 1) return;
    char rest[96];
    size_t n = strlen(e->describe);
    int32_t layer = e->model->graph.node[last->from].layer;
    e->part[0].type->describe(e->part[0].device, rest, sizeof rest);
    if (layer < 0) snprintf(e->describe + n, sizeof e->describe - n, ": output; %s: rest", rest);
    else
        snprintf(e->describe + n, sizeof e->describe - n, ": layers %d to %u, output; %s: rest",
                 (int)layer, e->model->hp.layers - 1, rest);
}

/* The device's part, opened, and before it, if there is something left, the CPU's. */
static ob_status split(struct engine *e, const ob_engine_options *o, ob_error *error) {
    struct part *p = &e->part[0];
    uint32_t n = e->model->hp.layers + 1, from = 0;
    ob_status s = OB_OK;
    if (o->gpu_layers && strcmp(o->gpu_layers, "auto") == 0) n = memory_layers(e, o, p);
    else if (o->gpu_layers) s = read_layers(e, o, &n, error);
    if (s == OB_OK) s = find_cut(e, n, &from, error);
    if (s != OB_OK) return s;
    if (n == 0) {
        p->type->close(&p->device);
        p->type = device_find("cpu");
        s = open_device(e, p, o, error);
        from = 0;
    } else if (from > 0) {
        e->part[1] = *p;
        e->parts = 2;
        *p = (struct part){.type = device_find("cpu")};
        s = open_device(e, p, o, error);
        if (s == OB_OK && !take_nodes(e, p, 0, from)) s = error_memory(error, "a graph", 0);
    }
    if (s == OB_OK && !take_nodes(e, &e->part[e->parts - 1], from, e->model->graph.nodes))
        s = error_memory(error, "a graph", 0);
    return s;
}

ob_status engine_parts_open(struct engine *e, const ob_engine_options *o, ob_error *error) {
    e->parts = 1;
    e->part[0] = (struct part){.type = e->type};
    if (o->gpu_layers && strcmp(e->type->name, "cpu") == 0)
        return refuse_layers(error, "device %s runs all layers as it is", e->type->name);
    if (o->gpu_layers && e->model->graph.whole)
        return refuse_layers(error, "%s", "a model that reads a sequence at once runs on one");
    ob_status s = open_device(e, &e->part[0], o, error);
    if (s == OB_OK) s = split(e, o, error);
    for (uint32_t i = 0; s == OB_OK && i < e->parts; i++) s = check_nodes(e, &e->part[i], error);
    if (s == OB_OK) describe(e);
    return s;
}

ob_status engine_parts_bind(struct engine *e, const ob_engine_options *o, ob_error *error) {
    struct source_load load = {.copy = o->no_mmap, .lock = o->mlock, .progress = o->progress,
                               .user = o->progress_user};
    ob_status s = source_load(e->model->source, &load, error);
    e->bound = arena_array(&e->arena, e->model->weights + 1, sizeof *e->bound);
    if (s == OB_OK && !e->bound) s = error_memory(error, "weights", e->model->weights);
    for (uint32_t i = 0; s == OB_OK && i < e->model->weights; i++)
        for (uint32_t k = 0; s == OB_OK && k < e->parts; k++) {
            const struct part *p = &e->part[k];
            struct weight *w = e->model->weight[i];
            if (e->parts > 1 && !memory_uses(e, p->from, p->to, w)) continue;
            s = p->type->bind_weight(p->device, w, error);
            if (s == OB_OK) e->bound[i] |= (uint8_t)(1u << k);
        }
    return s;
}

ob_status engine_parts_open_kv(struct engine *e, uint32_t group, uint64_t pages, ob_error *error) {
    for (uint32_t i = 0; i < e->parts; i++) {
        struct part *p = &e->part[i];
        if (p->page_bytes[group] == 0) continue;
        ob_status s = p->type->alloc(p->device, pages * p->page_bytes[group], &p->buffer[group],
                                     error);
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

ob_status engine_parts_prepare(struct engine *e, ob_error *error) {
    ob_status s = OB_OK;
    for (uint32_t i = 0; s == OB_OK && i < e->parts; i++) {
        struct part *p = &e->part[i];
        const struct device_kv kv = {
            .type = e->kv_type, .group = p->buffer, .page_bytes = p->page_bytes};
        s = p->type->prepare(p->device, p->graph, &kv, e->step_tokens, e->step_logits, &p->plan,
                             error);
    }
    return s;
}

static void close_part(struct engine *e, uint32_t k) {
    struct part *p = &e->part[k];
    if (p->plan) p->type->release(p->device, &p->plan);
    for (uint32_t i = 0; p->buffer && i < e->groups; i++)
        if (p->buffer[i]) p->type->free(p->device, &p->buffer[i]);
    for (uint32_t i = 0; e->bound && i < e->model->weights; i++)
        if (e->bound[i] >> k & 1) p->type->unbind_weight(p->device, e->model->weight[i]);
    if (p->device) p->type->close(&p->device);
}

void engine_parts_close(struct engine *e) {
    for (uint32_t i = e->parts; i-- > 0;) close_part(e, i);
}

/* ---- a step ---- */

/* The rows that the second part reads of the first. */
static ob_status hand_on(struct engine *e, const struct step *step, ob_error *error) {
    const struct part *from = &e->part[0], *to = &e->part[1];
    ob_status s = OB_OK;
    for (value_id v = 0; s == OB_OK && v < to->graph->values; v++)
        if (to->graph->value[v].given)
            s = to->type->give(to->device, to->plan, v, step->tokens,
                               from->type->output(from->device, from->plan, v), error);
    return s;
}

ob_status engine_parts_run(struct engine *e, const struct step *step, const float **logits,
                    ob_error *error) {
    ob_status s = OB_OK;
    for (uint32_t i = 0; s == OB_OK && i < e->parts; i++) {
        const struct part *p = &e->part[i];
        if (i > 0) s = hand_on(e, step, error);
        if (s == OB_OK) s = p->type->run(p->device, p->plan, step, logits, error);
    }
    return s;
}

const float *engine_parts_output(const struct engine *e, value_id v) {
    const struct part *last = &e->part[e->parts - 1];
    return v == NO_VALUE ? NULL : last->type->output(last->device, last->plan, v);
}

bool engine_parts_copy_page(const struct engine *e, uint32_t group, uint32_t to, uint32_t from) {
    for (uint32_t i = 0; i < e->parts; i++) {
        const struct part *p = &e->part[i];
        size_t bytes = p->page_bytes[group];
        if (bytes && p->type->copy(p->device, p->buffer[group], to * bytes, from * bytes, bytes,
                                   NULL) != OB_OK)
            return false;
    }
    return true;
}
