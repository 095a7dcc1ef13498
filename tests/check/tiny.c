/* SPDX-License-Identifier: Apache-2.0
 * tiny.c: see tiny.h. */
#include "tiny.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 2048, SHIFT = 17 };

void tiny_init(struct tiny *t, struct check_row *row) {
    *t = (struct tiny){.row = row};
    graph_init(&t->graph, &t->arena);
}

/* Does the block's largest lie in [low, high]? */
static bool fits(const struct quant *q, const void *block, float low, float high) {
    float value[256], top = 0;
    q->decode(block, value, 1);
    for (uint32_t i = 0; i < q->block; i++) {
        if (!(fabsf(value[i]) <= high)) return false;
        top = fmaxf(top, fabsf(value[i]));
    }
    return top >= low;
}

char *tiny_blocks(struct check_row *row, const struct quant *q, size_t blocks, float low,
                  float high) {
    char *data = check_bytes(row, blocks * q->bytes);
    for (char *block = data; block < data + blocks * q->bytes; block += q->bytes)
        while (!fits(q, block, low, high))
            for (uint32_t i = 0; i < q->bytes; i++) block[i] = (char)check_random(row);
    return data;
}

struct weight *tiny_weight(struct tiny *t, const struct quant *quant, uint32_t rows,
                           uint32_t cols) {
    struct weight *w = arena_alloc(&t->arena, sizeof *w);
    *w = (struct weight){.name = "w", .quant = quant, .rows = rows, .cols = cols};
    w->row_bytes = quant_row_bytes(quant, cols);
    if (strcmp(quant->name, "F32") == 0) {
        w->data = check_input(t->row, (size_t)rows * cols, -1, 1);
        return w;
    }
    if (!quant->encode) {
        w->data = tiny_blocks(t->row, quant, (size_t)rows * cols / quant->block, 0.25f, 4);
        return w;
    }
    float *values = arena_array(&t->arena, (size_t)rows * cols, sizeof *values);
    for (size_t i = 0; i < (size_t)rows * cols; i++) values[i] = check_uniform(t->row, -1, 1);
    void *data = check_bytes(t->row, rows * w->row_bytes);
    quant->encode(values, data, (size_t)rows * cols / quant->block);
    w->data = data;
    return w;
}

struct weight *tiny_experts(struct tiny *t, const struct quant *quant, uint32_t experts,
                            uint32_t rows, uint32_t cols) {
    const void **expert = arena_array(&t->arena, experts, sizeof *expert);
    struct weight *w = NULL;
    for (uint32_t e = 0; e < experts; e++) {
        w = tiny_weight(t, quant, rows, cols);
        expert[e] = w->data;
    }
    w->experts = experts;
    w->expert = expert;
    w->data = NULL;
    return w;
}

value_id tiny_input(struct tiny *t, uint32_t ids, uint32_t cols) {
    return graph_embed(&t->graph, tiny_weight(t, quant_list[QUANT_f32], ids, cols), 1);
}

/* What a device makes of each weight, once: nodes share them. */
static void bind(struct tiny_run *run) {
    const struct graph *g = &run->tiny->graph;
    ob_error error = {0};
    for (uint32_t i = 0; i < g->nodes; i++)
        for (int k = 0; k < 2 * NODE_OUTPUTS; k++) {
            struct weight *w = k < NODE_OUTPUTS ? g->node[i].weight[k]
                                                : g->node[i].bias[k - NODE_OUTPUTS];
            if (w && !w->bound && run->device->type->bind_weight(run->device, w, &error) != OB_OK)
                check_end(run->tiny->row, "bind_weight: %s", error.message);
        }
}

static void unbind(struct tiny_run *run) {
    const struct graph *g = &run->tiny->graph;
    for (uint32_t i = 0; i < g->nodes; i++)
        for (int k = 0; k < 2 * NODE_OUTPUTS; k++) {
            struct weight *w = k < NODE_OUTPUTS ? g->node[i].weight[k]
                                                : g->node[i].bias[k - NODE_OUTPUTS];
            if (w) run->device->type->unbind_weight(run->device, w);
        }
}

static void need_support(const struct tiny_run *run) {
    const struct graph *g = &run->tiny->graph;
    char reason[160];
    for (uint32_t i = 0; i < g->nodes; i++)
        if (!run->device->type->supports(run->device, g, &g->node[i], reason, sizeof reason))
            check_skip(run->tiny->row, "%s: %s", op_name(g->node[i].op), reason);
}

void tiny_open(struct tiny_run *run, struct tiny *t, const char *on, uint32_t threads,
               struct kv_types kv, uint32_t tokens) {
    struct device_options options = {.threads = threads};
    if (on && !device_find(on)) options.cpu_isa = on;
    tiny_open_with(run, t, options.cpu_isa ? "cpu" : on ? on : "ref", &options, kv, tokens);
}

void tiny_open_with(struct tiny_run *run, struct tiny *t, const char *device,
                    const struct device_options *options, struct kv_types kv, uint32_t tokens) {
    *run = (struct tiny_run){.tiny = t, .kv.type = kv};
    const struct device_type *type = device_find(device);
    ob_error error = {0};
    if (type->open(options, &run->device, &error) != OB_OK)
        check_end(t->row, "open: %s", error.message);
    need_support(run);
    bind(run);
    uint32_t groups = t->graph.groups;
    if (groups > TINY_GROUPS) check_end(t->row, "%u groups of caches", groups);
    struct device_buffer **buffer = arena_array(&t->arena, groups, sizeof *buffer);
    size_t *bytes = arena_array(&t->arena, groups, sizeof *bytes);
    for (uint32_t g = 0; g < groups; g++) {
        const struct cache_group *group = &t->graph.group[g];
        bytes[g] = group->kind == CACHE_STATE
                       ? (size_t)group->layers * group->state_floats * sizeof(float)
                       : (size_t)group->layers * PAGE_TOKENS * group->kv_heads *
                             kv_position_bytes(kv, group->k_dim, group->v_dim);
        type->alloc(run->device, bytes[g] * TINY_SEQS * TINY_PAGES, &buffer[g], &error);
        for (uint32_t s = 0; s < TINY_SEQS; s++) {
            uint32_t *page = arena_array(&t->arena, TINY_PAGES, sizeof *page);
            for (uint32_t p = 0; p < TINY_PAGES; p++) /* interleaved, and backwards */
                page[p] = (TINY_PAGES - 1 - p) * TINY_SEQS + s;
            run->page[s][g] = page;
        }
    }
    run->kv.group = buffer;
    run->kv.page_bytes = bytes;
    if (type->prepare(run->device, &t->graph, &run->kv, tokens, tokens, &run->plan, &error) !=
        OB_OK)
        check_fail(t->row, "prepare: %s", error.message);
}

void tiny_close(struct tiny_run *run) {
    const struct device_type *type = run->device->type;
    type->release(run->device, &run->plan);
    unbind(run);
    for (uint32_t g = 0; g < run->tiny->graph.groups; g++) {
        struct device_buffer *buffer = run->kv.group[g];
        type->free(run->device, &buffer);
    }
    type->close(&run->device);
}

void tiny_step(struct tiny_run *run, const uint32_t count[TINY_SEQS], float *out) {
    static int32_t id[TOKENS_MAX];
    static uint32_t pos[TOKENS_MAX], row[TOKENS_MAX];
    struct step step = {.id = id, .pos = pos, .row = row, .seq = run->seq};
    for (uint32_t s = 0; s < TINY_SEQS; s++) {
        if (count[s] == 0) continue;
        run->seq[step.seqs++] = (struct step_seq){
            .first = step.tokens, .count = count[s], .past = run->past[s], .page = run->page[s]};
        for (uint32_t i = 0; i < count[s]; i++, step.tokens++) {
            pos[step.tokens] = run->past[s]++;
            id[step.tokens] = (int32_t)(pos[step.tokens] + SHIFT * s);
            row[step.tokens] = step.tokens;
        }
    }
    step.logits = step.tokens;
    const float *result;
    ob_error error = {0};
    if (run->device->type->run(run->device, run->plan, &step, &result, &error) != OB_OK)
        check_fail(run->tiny->row, "run: %s", error.message);
    const struct value *value = &run->tiny->graph.value[run->tiny->graph.logits];
    size_t rows = value_rows(value, step.tokens, step.tokens, step.seqs);
    if (out) memcpy(out, result, rows * value->cols * sizeof *out);
}
