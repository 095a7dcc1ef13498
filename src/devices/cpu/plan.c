/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: what the device can run, and a plan: one reserved block for the values, quantized rows,
 * each thread's scratch and the attention parts, committed as it is first touched. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "devices/cpu/cpu.h"

/* ---- supports ---- */

static bool no(char *reason, size_t size, const char *format, const char *what) {
    snprintf(reason, size, format, what);
    return false;
}

static bool is_linear(const struct node *n) {
    return n->op == OP_linear || n->op == OP_linear_experts || n->op == OP_linear_heads;
}

bool cpu_supports(const struct device *device, const struct graph *graph, const struct node *node,
                  char *reason, size_t size) {
    (void)graph;
    const struct cpu_device *d = (const void *)device;
    if (is_linear(node))
        for (uint32_t i = 0; i < node->outputs; i++) {
            const struct quant *quant = node->weight[i]->quant;
            if (!d->kernels->linear[quant_index_of(quant)])
                return no(reason, size, "no linear kernel for %s weights", quant->name);
        }
    if ((node->op == OP_conv1d || node->op == OP_scan) && node->weight[0]->quant->block != 1)
        return no(reason, size, "weights in blocks (%s)", node->weight[0]->quant->name);
    if (node->op == OP_attention && node->u.attention.heads % node->u.attention.kv_heads != 0)
        return no(reason, size, "%s", "query heads are no multiple of KV heads");
    return true;
}

void cpu_kernel(const struct device *device, const struct node *node, uint32_t i, char *text,
                size_t size) {
    const struct kernels *k = ((const struct cpu_device *)(const void *)device)->kernels;
    size_t offset = offsetof(struct kernels, embed); /* of embed_position, too */
    if (node->op == OP_affine) offset = offsetof(struct kernels, affine);
    if (node->op == OP_attention) offset = offsetof(struct kernels, attention);
    if (node->op == OP_compress) offset = offsetof(struct kernels, compress);
    if (node->op == OP_conv1d) offset = offsetof(struct kernels, conv1d);
    if (node->op == OP_scan) offset = offsetof(struct kernels, scan);
    if (node->op == OP_wkv4) offset = offsetof(struct kernels, wkv4);
    if (node->op == OP_norm)
        offset = offsetof(struct kernels, norm) + node->u.norm.kind * sizeof *k->norm;
    const struct quant *quant = node->weight[i]->quant;
    bool linear = is_linear(node);
    if (linear)
        offset = offsetof(struct kernels, linear) + quant_index_of(quant) * sizeof *k->linear;
    bool quantized = linear && k->act_quantize && kernels_linear_takes_act(quant);
    const char *inputs = "";
    if (quantized) inputs = ", int8 inputs";
    if (linear && kernels_packs_floats(k, quant)) inputs = ", bf16 pairs as inputs";
    snprintf(text, size, "%s%s", kernels_origin(k, offset), inputs);
}

/* ---- vectors: weights of norms and biases as aligned floats, those of experts in a row ---- */

static const char *vector_of(const struct weight *w, uint32_t expert) {
    return w->expert ? w->expert[expert] : (const char *)w->data + expert * w->row_bytes;
}

static bool is_aligned_f32(const struct weight *w) {
    const char *first = vector_of(w, 0);
    if (strcmp(w->quant->name, "F32") != 0 || (uintptr_t)first % _Alignof(float) != 0) return false;
    for (uint32_t e = 1; e < w->experts; e++)
        if (vector_of(w, e) != first + e * w->row_bytes) return false;
    return true;
}

static bool vector(struct arena *arena, const struct weight *w, const float **out) {
    *out = NULL;
    if (!w) return true;
    if (is_aligned_f32(w)) {
        *out = (const float *)(const void *)vector_of(w, 0);
        return true;
    }
    uint32_t count = w->experts ? w->experts : 1;
    float *copy = arena_array(arena, (size_t)count * w->cols, sizeof *copy);
    if (!copy) return false;
    for (uint32_t e = 0; e < count; e++)
        w->quant->decode(vector_of(w, e), copy + (size_t)e * w->cols, w->cols / w->quant->block);
    *out = copy;
    return true;
}

/* [rows, cols] as floats [cols][rows]: lanes of the recurrent ops are rows. */
static bool transposed(struct arena *arena, const struct weight *w, const float **out) {
    float *row = arena_array(arena, w->cols, sizeof *row);
    float *to = arena_array(arena, (size_t)w->rows * w->cols, sizeof *to);
    if (!row || !to) return false;
    for (uint32_t r = 0; r < w->rows; r++) {
        w->quant->decode((const char *)w->data + r * w->row_bytes, row, w->cols);
        for (uint32_t c = 0; c < w->cols; c++) to[(size_t)c * w->rows + r] = row[c];
    }
    *out = to;
    return true;
}

/* The rows as floats. */
static bool table(struct arena *arena, const struct weight *w, const float **out) {
    float *to = arena_array(arena, (size_t)w->rows * w->cols, sizeof *to);
    if (!to) return false;
    for (uint32_t r = 0; r < w->rows; r++)
        w->quant->decode((const char *)w->data + r * w->row_bytes, to + (size_t)r * w->cols,
                         w->cols / w->quant->block);
    *out = to;
    return true;
}

/* -exp of a vector: the decay of RWKV-4. */
static bool minus_exp(struct arena *arena, const struct weight *w, const float **out) {
    float *to = arena_array(arena, w->cols, sizeof *to);
    if (!to) return false;
    w->quant->decode(w->data, to, w->cols / w->quant->block);
    for (uint32_t c = 0; c < w->cols; c++) to[c] = (float)-exp((double)to[c]);
    *out = to;
    return true;
}

static bool make_weight(struct arena *arena, const struct node *n, const float **out) {
    if (n->op == OP_norm || n->op == OP_affine || n->op == OP_attention)
        return vector(arena, n->weight[0], out);
    if (n->op == OP_conv1d || n->op == OP_scan) return transposed(arena, n->weight[0], out);
    if (n->op == OP_compress) return table(arena, n->weight[0], out);
    if (n->op == OP_wkv4) return minus_exp(arena, n->weight[0], out);
    return true;
}

/* Weights of one format share the input; of any format, if the table does not pack. */
static uint32_t act_for(const struct kernels *kernels, struct cpu_node *info,
                        const struct quant *quant) {
    for (uint32_t a = 0; a < info->acts; a++)
        if (info->act_quant[a] == quant || !kernels->act_pack) return a;
    info->act_quant[info->acts] = quant;
    return info->acts++;
}

static void choose_linear(const struct kernels *kernels, const struct node *n,
                          struct cpu_node *info) {
    for (uint32_t i = 0; i < n->outputs; i++) {
        const struct quant *quant = n->weight[i]->quant;
        info->linear[i] = kernels->linear[quant_index_of(quant)];
        bool quantized = kernels->act_quantize && kernels_linear_takes_act(quant);
        bool packed = quantized || kernels_packs_floats(kernels, quant);
        info->act[i] = packed ? act_for(kernels, info, quant) : ACT_NONE;
    }
}

static bool make_info(struct device_plan *p) {
    p->info = arena_array(&p->arena, p->graph->nodes, sizeof *p->info);
    if (!p->info) return false;
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        struct cpu_node *info = &p->info[i];
        if (!make_weight(&p->arena, n, &info->weight)) return false;
        for (uint32_t k = 0; k < NODE_OUTPUTS; k++)
            if (!vector(&p->arena, n->bias[k], &info->bias[k])) return false;
        if (is_linear(n)) choose_linear(p->device->kernels, n, info);
        if (n->op == OP_route &&
            !cpu_groups_make(p, p->graph->value[n->in[0]].cols, n->u.route.used))
            return false;
    }
    return true;
}

/* ---- memory ---- */

static size_t max(size_t a, size_t b) { return a > b ? a : b; }

struct sizes { size_t act, acts, scratch, parts; };

static struct sizes measure(const struct device_plan *p) {
    struct sizes s = {0};
    for (uint32_t i = 0; i < p->graph->nodes; i++) {
        const struct node *n = &p->graph->node[i];
        if (n->op == OP_linear) {
            const struct value *x = &p->graph->value[n->in[0]];
            size_t rows = value_rows(x, p->tokens, p->logits, p->tokens);
            if (p->info[i].acts)
                s.act = max(s.act, max(act_packed_bytes(x->cols, (uint32_t)rows),
                                       float_packed_bytes(x->cols, (uint32_t)rows)));
            s.acts = max(s.acts, p->info[i].acts);
            s.scratch = max(s.scratch, max(kernels_linear_scratch(), act_row_bytes(x->cols)));
        }
        if (n->op == OP_linear_experts) {
            const struct value *x = &p->graph->value[n->in[0]];
            s.act = max(s.act, act_row_bytes(x->cols) * p->tokens);
            s.acts = max(s.acts, 1);
            s.scratch = max(s.scratch, cpu_experts_scratch(x->cols));
        }
        if (n->op == OP_linear_heads)
            s.scratch = max(s.scratch, cpu_heads_scratch(n->weight[0]->cols));
        if (n->op == OP_index_select) s.scratch = max(s.scratch, cpu_index_scratch(n));
        if (n->op == OP_attention) {
            s.scratch = max(s.scratch, cpu_attention_scratch(n->u.attention.k_dim,
                                                           n->u.attention.v_dim));
            s.parts = max(s.parts, cpu_attention_parts(p->device, n->u.attention.v_dim));
        }
    }
    return s;
}

static bool reserve(struct device_plan *p) {
    struct sizes s = measure(p);
    /* Threads do not share a page, nor neighbouring lines that a prefetcher would join. */
    p->scratch_bytes = (s.scratch + 4095) & ~(size_t)4095;
    p->act_bytes = cpu_round64(s.act);
    size_t values = cpu_round64(p->layout.bytes), act = p->act_bytes * s.acts;
    size_t scratch = p->scratch_bytes * p->device->threads;
    p->memory_bytes = values + act + cpu_round64(s.parts) + scratch + 4096;
    p->memory = os_reserve(p->memory_bytes);
    if (!p->memory) return false;
    p->scratch = p->memory;
    p->values = p->scratch + scratch;
    p->act = p->values + values;
    p->parts = (float *)(void *)(p->act + act);
    return true;
}

static bool fill(struct device_plan *p, const struct device_kv *kv) {
    uint32_t groups = p->graph->groups;
    p->kv = arena_array(&p->arena, groups, sizeof *p->kv);
    p->page_bytes = arena_array(&p->arena, groups, sizeof *p->page_bytes);
    p->span = arena_array(&p->arena, p->tokens, sizeof *p->span);
    p->tile = arena_array(&p->arena, p->tokens, sizeof *p->tile);
    p->layout = graph_plan_make(p->graph, &p->arena, p->tokens, p->logits);
    if (!p->kv || !p->page_bytes || !p->span || !p->tile || !p->layout.offset) return false;
    for (uint32_t g = 0; g < groups; g++) {
        p->kv[g] = kv->group[g];
        p->page_bytes[g] = kv->page_bytes[g];
    }
    p->kv_type = kv->type;
    return make_info(p) && reserve(p);
}

ob_status cpu_prepare(struct device *device, const struct graph *graph, const struct device_kv *kv,
                      uint32_t tokens, uint32_t logits, struct device_plan **out, ob_error *error) {
    *out = NULL;
    for (uint32_t i = 0; i < graph->nodes; i++) {
        char reason[128];
        if (!cpu_supports(device, graph, &graph->node[i], reason, sizeof reason))
            return error_set(error, OB_ERR_UNSUPPORTED, "%s of layer %d: %s",
                             op_name(graph->node[i].op), graph->node[i].layer, reason);
    }
    struct device_plan *p = malloc(sizeof *p);
    if (!p) return error_memory(error, "a plan", sizeof *p);
    *p = (struct device_plan){.device = (void *)device, .graph = graph, .tokens = tokens,
                              .logits = logits};
    *out = p;
    if (fill(p, kv)) return OB_OK;
    cpu_release(device, out);
    return error_set(error, OB_ERR_MEMORY, "a plan for %u tokens does not fit", tokens);
}

void cpu_release(struct device *device, struct device_plan **plan) {
    (void)device;
    if (!*plan) return;
    if ((*plan)->memory) os_unreserve((*plan)->memory, (*plan)->memory_bytes);
    arena_free(&(*plan)->arena);
    free(*plan);
    *plan = NULL;
}
