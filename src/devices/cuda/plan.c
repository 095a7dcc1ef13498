/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: what the device can run, and a plan: all memory of its steps, allocated at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "devices/cuda/cuda.h"

enum { PARTS = 128 << 20 /* bytes of attention's parts, at least */ };

/* ---- supports ---- */

static bool is_linear(const struct node *n) {
    return n->op == OP_linear || n->op == OP_linear_experts || n->op == OP_linear_heads;
}

static const char *lacks(const struct node *n) {
    if (n->op == OP_attention && n->u.attention.heads % n->u.attention.kv_heads != 0)
        return "query heads that are no multiple of KV heads";
    if ((n->op == OP_conv1d || n->op == OP_scan) && n->weight[0]->quant->block != 1)
        return "weights in blocks";
    return NULL;
}

bool cuda_supports(const struct device *device, const struct graph *graph, const struct node *node,
                   char *reason, size_t size) {
    (void)device, (void)graph;
    const char *what = lacks(node);
    if (what) snprintf(reason, size, "%s", what);
    return !what;
}

void cuda_kernel_text(const struct device *device, const struct node *node, uint32_t i, char *text,
                      size_t size) {
    const struct cuda_device *d = (const void *)device;
    bool mma = (node->op == OP_linear || node->op == OP_linear_experts) &&
               node->weight[i]->rows > 1 &&
               d->mma[quant_index_of(node->weight[i]->quant)].few;
    snprintf(text, size, "cuda%s", mma ? ", float16 inputs" : is_linear(node) ? ", float32" : "");
}

/* ---- memory of a plan ---- */

CUdeviceptr cuda_plan_memory(struct device_plan *p, size_t bytes) {
    if (p->owned_count == p->owned_cap) {
        uint32_t cap = p->owned_cap ? 2 * p->owned_cap : 64;
        CUdeviceptr *list = realloc(p->owned, cap * sizeof *list);
        if (!list) return 0;
        p->owned = list;
        p->owned_cap = cap;
    }
    CUdeviceptr at = cuda_memory_new(p->device, bytes);
    if (at) p->owned[p->owned_count++] = at;
    return at;
}

CUdeviceptr cuda_plan_copy(struct device_plan *p, const void *data, size_t bytes) {
    CUdeviceptr at = cuda_plan_memory(p, bytes);
    return at && cuda_upload(p->device, at, data, bytes) ? at : 0;
}

/* An array of the graph, NULL: none; false when out of memory. */
static bool table(struct device_plan *p, const void *data, size_t bytes, CUdeviceptr *out) {
    *out = data ? cuda_plan_copy(p, data, bytes) : 0;
    return !data || *out;
}

static bool make_weight(struct device_plan *p, const struct node *n, CUdeviceptr *out) {
    const struct weight *w = n->weight[0];
    *out = 0;
    if (!w) return true;
    switch (n->op) {
    case OP_affine:
    case OP_attention:
    case OP_norm: *out = cuda_plan_vector(p, w); break;
    case OP_conv1d:
    case OP_scan: *out = cuda_plan_matrix(p, w, CUDA_TRANSPOSED); break;
    case OP_compress: *out = cuda_plan_matrix(p, w, CUDA_PLAIN); break;
    case OP_wkv4: *out = cuda_plan_matrix(p, w, CUDA_MINUS_EXP); break;
    default: return true;
    }
    return *out != 0;
}

static bool make_attention(struct device_plan *p, const struct node *n, CUdeviceptr extra[3]) {
    size_t heads = n->u.attention.heads, distances = 2 * (size_t)n->u.attention.reach + 1;
    return table(p, n->u.attention.alibi, heads * sizeof(float), &extra[0]) &&
           table(p, n->u.attention.offsets, heads * distances * sizeof(float), &extra[1]) &&
           table(p, n->u.attention.places, distances * sizeof(uint32_t), &extra[2]);
}

static bool make_ngrams(struct device_plan *p, const struct node *n, CUdeviceptr extra[3]) {
    const struct ngram_args *a = &n->u.embed_ngrams.args;
    size_t heads = (size_t)(a->order - 1) * a->heads;
    return table(p, a->multiplier, a->order * sizeof *a->multiplier, &extra[0]) &&
           table(p, a->size, heads * sizeof *a->size, &extra[1]) &&
           table(p, a->first, heads * sizeof *a->first, &extra[2]);
}

static bool make_extra(struct device_plan *p, const struct node *n, CUdeviceptr extra[3]) {
    size_t half = n->u.rope_table.half * sizeof(float);
    switch (n->op) {
    case OP_attention: return make_attention(p, n, extra);
    case OP_delta:
        return table(p, n->u.delta.fixed_decay, n->u.delta.heads * sizeof(float), &extra[0]);
    case OP_embed_ngrams: return make_ngrams(p, n, extra);
    case OP_rope_table:
        return table(p, n->u.rope_table.freq, half, &extra[0]) &&
               table(p, n->u.rope_table.freq_long, half, &extra[1]);
    default: return true;
    }
}

/* Weights that the recipe computed are not among those of the file, which are bound by now. */
static bool bind_made(struct device_plan *p, struct weight *w) {
    if (!w || w->bound) return true;
    struct weight **list = realloc(p->bound, (p->bound_count + 1) * sizeof *list);
    if (!list) return false;
    p->bound = list;
    if (cuda_bind_weight(&p->device->base, w, NULL) != OB_OK) return false;
    p->bound[p->bound_count++] = w;
    return true;
}

static bool make_node(struct device_plan *p, const struct node *n, struct cuda_node *info) {
    for (uint32_t k = 0; k < NODE_OUTPUTS; k++)
        if (!bind_made(p, n->weight[k]) || !bind_made(p, n->bias[k])) return false;
    if (!make_weight(p, n, &info->weight) || !make_extra(p, n, info->extra)) return false;
    for (uint32_t k = 0; k < NODE_OUTPUTS; k++) {
        info->bias[k] = cuda_plan_vector(p, n->bias[k]);
        if (n->bias[k] && !info->bias[k]) return false;
    }
    return true;
}

static size_t max(size_t a, size_t b) { return a > b ? a : b; }

struct sizes { size_t parts, route, experts, pairs, act, sums; };

static struct sizes measure(const struct device_plan *p) {
    struct sizes s = {0};
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        if (n->op == OP_attention) s.parts = max(s.parts, cuda_attention_parts(p, n));
        if (n->op == OP_index_select) s.parts = max(s.parts, cuda_index_parts(p, n));
        if (n->op == OP_linear || n->op == OP_linear_experts) {
            const struct value *x = &p->graph->value[n->in[0]];
            size_t rows = value_rows(x, p->tokens, p->logits, p->tokens);
            s.act = max(s.act, cuda_act_bytes(x->cols, (uint32_t)rows));
        }
        if (n->op != OP_route) continue;
        uint32_t experts = p->graph->value[n->in[0]].cols;
        s.route = max(s.route, (size_t)p->tokens * 2 * experts * sizeof(float));
        s.experts = max(s.experts, experts);
        s.pairs = max(s.pairs, (size_t)p->tokens * n->u.route.used);
    }
    if (s.parts) s.parts = max(s.parts, PARTS);
    s.sums = cuda_sums_bytes(p);
    return s;
}

/* Rows that are halved at once. */
static size_t scales(const struct device_plan *p, const struct sizes *s) {
    return max(max(p->tokens, p->logits), s->pairs);
}

/* What a node copies: see make_weight() and make_extra(). */
static uint64_t copies_of(const struct node *n) {
    const struct weight *w = n->weight[0];
    uint64_t distances = 2 * (uint64_t)n->u.attention.reach + 1;
    switch (n->op) {
    case OP_attention:
        return n->u.attention.offsets || n->u.attention.places
                   ? (n->u.attention.heads + 1) * distances * sizeof(float)
                   : n->u.attention.heads * sizeof(float);
    case OP_compress:
    case OP_conv1d:
    case OP_scan:
    case OP_wkv4: return w ? (uint64_t)w->rows * w->cols * sizeof(float) : 0;
    case OP_rope_table: return 2 * (uint64_t)n->u.rope_table.half * sizeof(float);
    default: return 0;
    }
}

uint64_t cuda_plan_bytes(const struct device *device, const struct graph *graph,
                         const struct device_kv *kv, const uint64_t *group_bytes, uint32_t tokens,
                         uint32_t logits) {
    (void)device;
    struct device_plan p = {
        .graph = graph, .kv_type = kv->type, .tokens = tokens, .logits = logits};
    p.page_bytes = arena_array(&p.arena, graph->groups + 1, sizeof *p.page_bytes);
    p.kv = arena_array(&p.arena, graph->groups + 1, sizeof *p.kv);
    struct device_buffer *room = arena_array(&p.arena, graph->groups + 1, sizeof *room);
    p.layout = graph_plan_make(graph, &p.arena, tokens, logits);
    uint64_t bytes = UINT64_MAX; /* out of memory here */
    if (p.page_bytes && p.kv && room && p.layout.offset) {
        for (uint32_t g = 0; g < graph->groups; g++) {
            p.page_bytes[g] = kv->page_bytes[g];
            room[g].bytes = group_bytes[g];
            p.kv[g] = &room[g];
        }
        struct sizes s = measure(&p);
        bytes = p.layout.bytes + s.sums + s.parts + s.act + s.route +
                scales(&p, &s) * sizeof(float);
        if (s.pairs)
            bytes += (1 + 3 * s.pairs) * sizeof(uint32_t) +
                     cuda_tiles_most((uint32_t)s.pairs, (uint32_t)s.experts) *
                         sizeof(struct cuda_tile);
        for (uint32_t i = 0; i < graph->nodes; i++) bytes += copies_of(&graph->node[i]);
    }
    arena_free(&p.arena);
    return bytes;
}

static bool reserve(struct device_plan *p) {
    struct sizes s = measure(p);
    p->parts_bytes = s.parts;
    p->values = cuda_plan_memory(p, p->layout.bytes + s.sums);
    if (s.parts) p->parts = cuda_plan_memory(p, s.parts);
    p->act = cuda_plan_memory(p, s.act);
    p->act_scale = cuda_plan_memory(p, scales(p, &s) * sizeof(float));
    if (!p->values || !p->act || !p->act_scale || (s.parts && !p->parts)) return false;
    if (s.pairs == 0) return true;
    p->scratch = cuda_plan_memory(p, s.route);
    p->groups.token = cuda_plan_memory(p, s.pairs * sizeof(uint32_t));
    p->groups.expert = cuda_plan_memory(p, s.pairs * sizeof(uint32_t));
    p->groups.pair = cuda_plan_memory(p, s.pairs * sizeof(uint32_t));
    uint32_t tiles = cuda_tiles_most((uint32_t)s.pairs, (uint32_t)s.experts);
    p->groups.tile = cuda_plan_memory(p, tiles * sizeof(struct cuda_tile));
    p->groups.tiles = cuda_plan_memory(p, sizeof(uint32_t));
    return p->scratch && p->groups.token && p->groups.expert && p->groups.pair &&
           p->groups.tile && p->groups.tiles;
}

static bool make_outputs(struct device_plan *p) {
    const value_id v[] = {p->graph->logits, p->graph->embedding, p->graph->pooled};
    for (int i = 0; i < 3; i++) {
        if (v[i] == NO_VALUE) continue;
        const struct value *value = &p->graph->value[v[i]];
        size_t n = value_rows(value, p->tokens, p->logits, p->tokens) * value->cols;
        if (!cuda_ok(p->device, p->device->driver->host_alloc(&p->output[i], n * sizeof(float)),
                     "pinned memory"))
            return false;
    }
    return true;
}

static bool fill(struct device_plan *p, const struct device_kv *kv) {
    uint32_t groups = p->graph->groups, nodes = p->graph->nodes;
    p->kv = arena_array(&p->arena, groups + 1, sizeof *p->kv);
    p->page_bytes = arena_array(&p->arena, groups + 1, sizeof *p->page_bytes);
    p->info = arena_array(&p->arena, nodes, sizeof *p->info);
    p->layout = graph_plan_make(p->graph, &p->arena, p->tokens, p->logits);
    if (!p->kv || !p->page_bytes || !p->info || !p->layout.offset) return false;
    for (uint32_t g = 0; g < groups; g++) {
        p->kv[g] = kv->group[g];
        p->page_bytes[g] = kv->page_bytes[g];
    }
    p->kv_type = kv->type;
    for (uint32_t i = 0; i < nodes; i++)
        if (!make_node(p, &p->graph->node[i], &p->info[i])) return false;
    for (uint32_t i = 0; i < nodes; i++)
        if (p->graph->node[i].op == OP_attention && !cuda_attention_allow(p, &p->graph->node[i]))
            return false;
    bool fused = p->device->unfused || (cuda_fuse(p) && cuda_fuse_sums(p));
    return fused && reserve(p) && make_outputs(p);
}

ob_status cuda_prepare(struct device *device, const struct graph *graph, const struct device_kv *kv,
                       uint32_t tokens, uint32_t logits, struct device_plan **out,
                       ob_error *error) {
    *out = NULL;
    for (uint32_t i = 0; i < graph->nodes; i++) {
        char reason[128];
        if (!cuda_supports(device, graph, &graph->node[i], reason, sizeof reason))
            return error_set(error, OB_ERR_UNSUPPORTED, "%s of layer %d: %s",
                             op_name(graph->node[i].op), graph->node[i].layer, reason);
    }
    struct device_plan *p = calloc(1, sizeof *p);
    if (!p) return error_memory(error, "a plan", sizeof *p);
    p->device = (void *)device;
    p->graph = graph;
    p->tokens = tokens;
    p->logits = logits;
    p->device->driver->context_set(p->device->context);
    *out = p;
    if (fill(p, kv)) return OB_OK;
    ob_status status = cuda_report(p->device, error);
    cuda_release(device, out);
    if (status != OB_OK && status != OB_ERR_MEMORY) return status;
    return error_set(error, OB_ERR_MEMORY, "a plan for %u tokens does not fit on the GPU", tokens);
}

void cuda_release(struct device *device, struct device_plan **plan) {
    struct device_plan *p = *plan;
    if (!p) return;
    const struct cuda_driver *call = p->device->driver;
    call->context_set(p->device->context);
    cuda_drop_graphs(p);
    for (uint32_t i = 0; i < p->bound_count; i++) cuda_unbind_weight(device, p->bound[i]);
    for (uint32_t i = 0; i < p->owned_count; i++) call->memory_free(p->owned[i]);
    for (int i = 0; i < 3; i++)
        if (p->output[i]) call->host_free(p->output[i]);
    if (p->step_memory.host) call->host_free(p->step_memory.host);
    if (p->step_memory.device) call->memory_free(p->step_memory.device);
    free(p->bound);
    free(p->owned);
    arena_free(&p->arena);
    free(p);
    *plan = NULL;
}
