/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.c: a mixture of experts. A route node groups the step's pairs of token and expert; then
 * all active experts of a node are one list of pieces of about equal work, so that one token keeps
 * all threads busy and reads the weights of its own experts alone.
 *
 * A piece is a range of rows for one expert, those of all outputs counted through: of one token a
 * long run of one matrix, of many tokens all of an expert's. It brings the expert's rows of x into
 * the form that linear takes, at most STAGE_TOKENS at a time, in its thread's own memory: they are
 * read again from the second-level cache, not from a copy of the whole batch for each of a token's
 * experts. Tokens are quantized once for all their experts; pairs, which one expert has each, by
 * the piece. */
#include <assert.h>
#include <string.h>

#include "devices/cpu/cpu.h"

enum {
    STAGE_TOKENS = 256,
    ROW_STEP = 32,       /* kernels work on 32 rows at a time */
    FEW_TOKENS = 16,     /* above it kernels go through the columns in the outer loop: then */
    ROWS_CALL = 256,     /* so many rows at once, whose results stay in the second-level cache */
    PIECES_A_THREAD = 8, /* threads end together */
    PIECE_COST = 8,      /* tokens whose product takes as long as reading the expert's weights */
    ACT_INLINE = 8192,   /* elements quantized without waking the pool */
};

/* ---- grouping ---- */

bool cpu_groups_make(struct device_plan *p, uint32_t experts, uint32_t used) {
    struct cpu_groups *g = &p->groups;
    size_t pairs = (size_t)p->tokens * used, pieces = (size_t)p->device->threads * PIECES_A_THREAD;
    if (experts > g->experts_max) {
        g->experts_max = experts;
        g->first = arena_array(&p->arena, (size_t)experts + 1, sizeof *g->first);
        g->piece = arena_array(&p->arena, experts + pieces, sizeof *g->piece);
    }
    if (pairs > g->pairs_max) {
        g->pairs_max = pairs;
        g->token = arena_array(&p->arena, pairs, sizeof *g->token);
        g->pair = arena_array(&p->arena, pairs, sizeof *g->pair);
    }
    return g->first && g->piece && g->token && g->pair;
}

struct route {
    const struct kernels *kernels;
    struct route_job job;
    const float *logits, *chosen;
    float *out;
};

static void route_row(void *arg, uint32_t t, uint32_t thread) {
    (void)thread;
    const struct route *r = arg;
    struct route_job job = r->job;
    if (r->chosen) job.chosen = r->chosen + (size_t)t * job.used;
    r->kernels->route(&job, r->logits + (size_t)t * r->job.experts,
                      r->out + (size_t)t * 2 * r->job.used);
}

void cpu_route(struct device_plan *p, const struct node *n) {
    const struct route_args *args = &n->u.route;
    const struct cpu_node *info = cpu_info(p, n);
    struct route r = {.kernels = p->device->kernels,
                      .job = {.score = args->score,
                              .group = args->group,
                              .experts = p->graph->value[n->in[0]].cols,
                              .used = args->used,
                              .always = args->always,
                              .bias = info->bias[0],
                              .bias_to_logits = args->bias_to_logits,
                              .groups = args->groups,
                              .groups_used = args->groups_used,
                              .group_zero = args->group_zero,
                              .normalize = args->normalize,
                              .normalize_eps = args->normalize_eps,
                              .scale = args->scale,
                              .expert_scale = info->bias[1],
                              .jitter_eps = args->jitter_eps},
                      .logits = cpu_value(p, n->in[0]),
                      .chosen = args->has_chosen ? cpu_value(p, n->in[1]) : NULL,
                      .out = cpu_value(p, n->out[0])};
    if (p->step->tokens == 1)
        route_row(&r, 0, 0);
    else
        pool_run(p->device->pool, p->step->tokens, route_row, &r);
    struct cpu_groups *g = &p->groups;
    g->of = n->out[0];
    g->experts = r.job.experts;
    g->used = r.job.used;
    experts_group(r.out, p->step->tokens, g->experts, g->used, g->first, g->token, g->pair);
}

/* ---- linear ---- */

struct experts {
    struct device_plan *plan;
    const struct node *node;
    const float *x;
    uint32_t cols;
    bool pairs; /* x has a row for each pair, else for each token */
    uint32_t pieces;
};

static uint32_t experts_of(const struct node *n) { return n->weight[0]->experts; }

static size_t stage_row_bytes(uint32_t cols) {
    size_t packed = act_packed_bytes(cols, 1);
    size_t floats = float_packed_bytes(cols, 1); /* no less than as they are */
    return cpu_round64(packed > floats ? packed : floats);
}

static size_t stage_at(uint32_t cols) {
    size_t linear = kernels_linear_scratch(), act = act_row_bytes(cols);
    return cpu_round64(linear > act ? linear : act);
}

size_t cpu_experts_scratch(uint32_t cols) {
    return stage_at(cols) + STAGE_TOKENS * stage_row_bytes(cols);
}

static void quantize_row(void *arg, uint32_t row, uint32_t thread) {
    (void)thread;
    const struct experts *x = arg;
    x->plan->device->kernels->act_quantize(x->x + (size_t)row * x->cols, x->cols,
                                           x->plan->act + act_row_bytes(x->cols) * row);
}

static void quantize(struct experts *x) {
    uint32_t tokens = x->plan->step->tokens;
    if ((size_t)tokens * x->cols <= ACT_INLINE)
        for (uint32_t row = 0; row < tokens; row++) quantize_row(x, row, 0);
    else
        pool_run(x->plan->device->pool, tokens, quantize_row, x);
}

static bool takes_act(const struct cpu_node *info) {
    for (uint32_t a = 0; a < info->acts; a++)
        if (kernels_linear_takes_act(info->act_quant[a])) return true;
    return false;
}

/* Rows of x for the pairs [pair, pair + n) as linear takes them for input `act` of the node. */
static const void *stage(const struct experts *x, uint32_t act, uint32_t pair, uint32_t n,
                         uint32_t thread) {
    const struct kernels *kernels = x->plan->device->kernels;
    const struct cpu_node *info = cpu_info(x->plan, x->node);
    char *scratch = cpu_scratch(x->plan, thread), *to = scratch + stage_at(x->cols);
    const uint32_t *token = x->plan->groups.token + pair;
    const float *rows = x->x + (x->pairs ? (size_t)pair * x->cols : 0);
    if (act == ACT_NONE) {
        if (x->pairs) return rows;
        kernels->gather_rows(rows, token, n, x->cols, (float *)(void *)to);
        return to;
    }
    if (!kernels_linear_takes_act(info->act_quant[act])) {
        for (uint32_t i = 0; i < n; i += FLOAT_GROUP) {
            const float *row[FLOAT_GROUP];
            uint32_t tokens = n - i < FLOAT_GROUP ? n - i : FLOAT_GROUP;
            for (uint32_t t = 0; t < tokens; t++)
                row[t] = rows + (size_t)(x->pairs ? i + t : token[i + t]) * x->cols;
            kernels->float_pack(info->act_quant[act], row, tokens, x->cols,
                                to + float_packed_bytes(x->cols, i));
        }
        return to;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = act_row_bytes(x->cols);
        char *row = kernels->act_pack ? scratch : to + bytes * i;
        if (x->pairs) kernels->act_quantize(rows + (size_t)i * x->cols, x->cols, row);
        else if (kernels->act_pack) row = x->plan->act + bytes * token[i];
        else memcpy(row, x->plan->act + bytes * token[i], bytes);
        if (!kernels->act_pack) continue;
        struct act parts = act_row(row, x->cols, 0);
        kernels->act_pack(info->act_quant[act], &parts, x->cols, i, n, to);
    }
    return to;
}

/* The outputs that take input `act`, for n pairs of the piece's expert. */
static void multiply_act(const struct experts *x, const struct cpu_piece *piece, uint32_t act,
                         uint32_t pair, uint32_t n, uint32_t thread) {
    struct device_plan *p = x->plan;
    const struct cpu_node *info = cpu_info(p, x->node);
    const void *rows = NULL;
    for (uint32_t i = 0, base = 0; i < x->node->outputs; base += x->node->weight[i++]->rows) {
        const struct weight *w = x->node->weight[i];
        uint32_t row0 = piece->row0 > base ? piece->row0 - base : 0;
        uint32_t row1 = piece->row1 > base ? piece->row1 - base : 0;
        if (row1 > w->rows) row1 = w->rows;
        if (info->act[i] != act || row0 >= row1) continue;
        if (!rows) rows = stage(x, act, pair, n, thread);
        size_t bias_at = (size_t)piece->expert * w->rows;
        struct linear_job job = {.quant = w->quant,
                                 .w = w->expert[piece->expert],
                                 .row_bytes = w->row_bytes,
                                 .cols = x->cols,
                                 .tokens = n,
                                 .x = rows,
                                 .bias = info->bias[i] ? info->bias[i] + bias_at : NULL,
                                 .y = cpu_value(p, x->node->out[i]) + (size_t)pair * w->rows,
                                 .y_stride = w->rows,
                                 .scratch = cpu_scratch(p, thread)};
        uint32_t step = n > FEW_TOKENS ? ROWS_CALL : row1 - row0;
        for (uint32_t row = row0; row < row1; row += step)
            info->linear[i](&job, row, row1 - row < step ? row1 : row + step);
    }
}

static void multiply(void *arg, uint32_t index, uint32_t thread) {
    const struct experts *x = arg;
    const struct cpu_groups *g = &x->plan->groups;
    const struct cpu_piece *piece = &g->piece[index];
    const struct cpu_node *info = cpu_info(x->plan, x->node);
    uint32_t end = g->first[piece->expert + 1];
    for (uint32_t pair = g->first[piece->expert], n; pair < end; pair += n) {
        n = end - pair < STAGE_TOKENS ? end - pair : STAGE_TOKENS;
        for (uint32_t act = 0; act < info->acts; act++)
            multiply_act(x, piece, act, pair, n, thread);
        multiply_act(x, piece, ACT_NONE, pair, n, thread);
    }
}

static uint64_t cost_of(const struct cpu_groups *g, uint32_t expert) {
    uint32_t tokens = g->first[expert + 1] - g->first[expert];
    return tokens ? tokens + PIECE_COST : 0;
}

/* About threads * PIECES_A_THREAD pieces of equal work; at least one for each active expert. */
static void cut(struct experts *x, uint32_t rows) {
    struct cpu_groups *g = &x->plan->groups;
    uint64_t total = 0, wanted = (uint64_t)x->plan->device->threads * PIECES_A_THREAD;
    uint32_t experts = experts_of(x->node);
    for (uint32_t e = 0; e < experts; e++) total += cost_of(g, e);
    for (uint32_t e = 0; e < experts; e++) {
        uint64_t cost = cost_of(g, e);
        if (!cost) continue;
        uint64_t n = cost * wanted / total;
        uint32_t step = n > 1 ? (uint32_t)((rows + n - 1) / n) : rows;
        step = (step + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
        for (uint32_t row = 0; row < rows; row += step)
            g->piece[x->pieces++] = (struct cpu_piece){e, row, row + step};
    }
}

/* The pairs of experts without a matrix come last. */
static void clear_rest(const struct experts *x) {
    const struct cpu_groups *g = &x->plan->groups;
    uint32_t from = g->first[experts_of(x->node)], to = g->first[g->experts];
    for (uint32_t i = 0; i < x->node->outputs; i++) {
        size_t rows = x->node->weight[i]->rows;
        float *y = cpu_value(x->plan, x->node->out[i]);
        memset(y + from * rows, 0, (to - from) * rows * sizeof *y);
    }
}

void cpu_linear_experts(struct device_plan *p, const struct node *n) {
    struct experts x = {.plan = p,
                        .node = n,
                        .x = cpu_value(p, n->in[0]),
                        .cols = p->graph->value[n->in[0]].cols,
                        .pairs = p->graph->value[n->in[0]].rows == ROWS_EXPERTS};
    assert(p->groups.of == n->in[1] && p->groups.experts >= experts_of(n));
    if (takes_act(cpu_info(p, n)) && !x.pairs) quantize(&x);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n->outputs; i++) rows += n->weight[i]->rows;
    clear_rest(&x);
    cut(&x, rows);
    pool_run(p->device->pool, x.pieces, multiply, &x);
}
