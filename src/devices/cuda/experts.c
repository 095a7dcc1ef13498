/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.c: routers, and products of experts. What a step routes where is known to the GPU alone:
 * grids are as large as the step's shape allows, and their kernels read how many tiles there are
 * (kernels/experts.cu, kernels/mma_experts.cu; of other formats, kernels/linear.cu). */
#include "devices/cuda/cuda.h"

static uint32_t blocks(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

static const struct cuda_weight *bound(const struct weight *w) { return w->bound; }

/* ---- on tensor cores ---- */

/* As in mma_experts.cu. */
enum { SEGMENT = 256, TILE = 16, WARP = 32, WARPS = 8, LOW = 8, HIGH = 40 };
enum { MANY_ROWS = 128, MANY_SHARED = HIGH * 8 + 2 * HIGH * SEGMENT * 2 };
enum { SEGMENT_PART = TILE * LOW * 4, SHARED = 200 << 10 /* bytes that a block may want */ };
enum { BUSY = 64 /* tiles that keep a GPU so */ };

/* Pairs of a tile: a low one's weights are read once for few pairs, and experts that have many read
 * them again. */
static uint32_t height(uint32_t tokens, uint32_t pairs, uint32_t experts) {
    enum { EACH = 6 };
    return tokens <= LOW || pairs <= EACH * experts ? LOW : HIGH;
}

/* Tiles of at most `high` pairs, if each expert's last is as empty as can be. */
static uint32_t tiles_of(uint32_t pairs, uint32_t experts, uint32_t high) {
    uint32_t some = pairs < experts ? pairs : experts;
    return (pairs + some * (high - 1)) / high;
}

uint32_t cuda_tiles_most(uint32_t pairs, uint32_t experts) {
    return tiles_of(pairs, experts, LOW);
}

/* Blocks of `rows` rows of all the weights. */
static uint32_t cut(struct cuda_mma_experts *a, uint32_t rows) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < a->weights; i++) {
        a->weight[i].blocks = blocks(a->weight[i].rows, rows);
        all += a->weight[i].blocks;
    }
    return all;
}

static void multiply(struct device_plan *p, enum quant_index quant, struct cuda_mma_experts *a,
                     uint32_t tiles) {
    uint32_t segments = blocks(a->cols, SEGMENT), most = segments > 4 * WARPS ? 2 * WARPS : WARPS;
    if (p->groups.height == HIGH || segments * SEGMENT_PART > SHARED) {
        struct cuda_grid grid = {tiles, cut(a, MANY_ROWS), 1, WARPS * WARP, MANY_SHARED};
        cuda_launch(p, p->device->mma[quant].experts_many, grid, a);
        return;
    }
    /* A warp's work is two segments of 16 rows, one where tiles are few and rows short. */
    uint32_t parts_of = tiles < BUSY && segments < WARPS ? WARPS : 2 * WARPS;
    a->stack = segments < parts_of ? parts_of / segments : 1;
    uint32_t parts = a->stack * segments, warps = blocks(parts, blocks(parts, most));
    struct cuda_grid grid = {tiles, cut(a, a->stack * TILE), 1, warps * WARP,
                             parts * SEGMENT_PART};
    cuda_launch(p, p->device->mma[quant].experts_few, grid, a);
}

static void add_weight(const struct device_plan *p, const struct node *n, uint32_t i,
                       struct cuda_mma_experts *a) {
    const struct cuda_weight *w = bound(n->weight[i]);
    a->weight[a->weights++] = (struct cuda_mma_expert){.data = w->data,
                                                       .by = w->each,
                                                       .bias = cuda_info(p, n)->bias[i],
                                                       .y = cuda_value(p, n->out[i]),
                                                       .row_bytes = w->matrix.row_bytes,
                                                       .matrix_bytes = w->matrix.matrix_bytes,
                                                       .rows = w->matrix.rows,
                                                       .matrices = w->matrix.matrices};
}

/* Weights of one format go together. */
static void multiply_all(struct device_plan *p, const struct node *n, bool of_tokens) {
    bool done[NODE_OUTPUTS] = {false};
    uint32_t pairs = cuda_rows(p, n->out[0]);
    for (uint32_t i = 0; i < n->outputs; i++) {
        const struct cuda_matrix *matrix = &bound(n->weight[i])->matrix;
        struct cuda_mma_experts args = {.x = p->act,
                                        .scale = p->act_scale,
                                        .token = of_tokens ? p->groups.token : 0,
                                        .tile = p->groups.tile,
                                        .tiles = p->groups.tiles,
                                        .cols = cuda_cols(p, n->in[0])};
        for (uint32_t k = i; k < n->outputs; k++) {
            const struct cuda_weight *w = bound(n->weight[k]);
            if (done[k] || w->each == 0 || w->matrix.quant != matrix->quant) continue;
            add_weight(p, n, k, &args);
            done[k] = true;
        }
        if (!args.weights) continue;
        multiply(p, matrix->quant, &args,
                 tiles_of(pairs, p->groups.experts, p->groups.height));
    }
}

/* ---- of other formats ---- */

enum { ROWS = 8, THREADS = 256, /* as in linear.cu */ GRID_Y = 32768 };

/* Of the pairs, some thousands at a time: a grid is no higher. */
static void multiply_plain(struct device_plan *p, const struct node *n, uint32_t i,
                           bool of_tokens) {
    struct cuda_linear args = {.w = bound(n->weight[i])->matrix,
                               .bias = cuda_info(p, n)->bias[i],
                               .x_stride = cuda_cols(p, n->in[0]),
                               .y_stride = cuda_cols(p, n->out[i])};
    uint32_t pairs = cuda_rows(p, n->out[i]);
    for (uint32_t at = 0; at < pairs; at += GRID_Y) {
        uint32_t now = pairs - at < GRID_Y ? pairs - at : GRID_Y;
        args.tokens = now;
        args.expert = p->groups.expert + at * sizeof(uint32_t);
        args.token = of_tokens ? p->groups.token + at * sizeof(uint32_t) : 0;
        args.x = cuda_value(p, n->in[0]);
        if (!of_tokens) args.x += (uint64_t)at * args.x_stride * sizeof(float);
        args.y = cuda_value(p, n->out[i]) + (uint64_t)at * args.y_stride * sizeof(float);
        struct cuda_grid grid = {blocks(args.w.rows, ROWS), now, 1, THREADS, 0};
        cuda_launch(p, p->device->linear_experts[args.w.quant], grid, &args);
    }
}

void cuda_linear_experts(struct device_plan *p, const struct node *n) {
    bool of_tokens = p->graph->value[n->in[0]].rows == ROWS_TOKENS;
    if (cuda_is_halving(n)) {
        if (!cuda_info(p, n)->halved) cuda_halve(p, n->in[0]);
        multiply_all(p, n, of_tokens);
    }
    for (uint32_t i = 0; i < n->outputs; i++)
        if (bound(n->weight[i])->each == 0) multiply_plain(p, n, i, of_tokens);
}

/* ---- routers ---- */

static void group(struct device_plan *p, const struct cuda_route *route) {
    enum { TOGETHER = 64 /* tokens, at most, that one block routes */, BLOCK = 1024, LEAST = 256 };
    enum { ROUTERS = 4 /* warps of a block */, SHARED_BLOCK = 47 << 10 /* bytes */ };
    uint32_t each = route->experts * (uint32_t)sizeof(uint32_t);
    uint32_t pairs = route->tokens * route->used;
    /* Where experts begin, the list of experts, and the counts: see kernels/experts.cu. */
    uint32_t other = each + (pairs <= GROUP_LISTED ? pairs * (uint32_t)sizeof(uint16_t) : 0);
    uint32_t warps = (SHARED_BLOCK - other) / each;
    if (warps > BLOCK / WARP) warps = BLOCK / WARP;
    if (warps > blocks(pairs, WARP)) warps = blocks(pairs, WARP);
    p->groups.experts = route->experts;
    p->groups.height = height(route->tokens, pairs, route->experts);
    struct cuda_route_group args = {.route = *route,
                                    .group = {.route = route->y,
                                              .token = p->groups.token,
                                              .expert = p->groups.expert,
                                              .pair = p->groups.pair,
                                              .tile = p->groups.tile,
                                              .tiles = p->groups.tiles,
                                              .tokens = route->tokens,
                                              .experts = route->experts,
                                              .used = route->used,
                                              .height = p->groups.height,
                                              .warps = warps}};
    if (route->tokens <= TOGETHER) {
        uint32_t of = route->tokens > warps ? route->tokens : warps;
        uint32_t threads = of * WARP > BLOCK ? BLOCK : of * WARP > LEAST ? of * WARP : LEAST;
        struct cuda_grid grid = {1, 1, 1, threads, other + warps * each};
        cuda_run_kernel(p, CUDA_route_group, grid, &args);
        return;
    }
    struct cuda_grid grid = {blocks(route->tokens, ROUTERS), 1, 1, ROUTERS * WARP, 0};
    cuda_run_kernel(p, CUDA_route, grid, &args.route);
    grid = (struct cuda_grid){1, 1, 1, BLOCK, other + warps * each};
    cuda_run_kernel(p, CUDA_group, grid, &args.group);
}

void cuda_route(struct device_plan *p, const struct node *n) {
    const struct route_args *r = &n->u.route;
    struct cuda_route args = {.logits = cuda_value(p, n->in[0]),
                              .chosen = r->has_chosen ? cuda_value(p, n->in[1]) : 0,
                              .bias = cuda_info(p, n)->bias[0],
                              .expert_scale = cuda_info(p, n)->bias[1],
                              .y = cuda_value(p, n->out[0]),
                              .scratch = p->scratch,
                              .tokens = p->shape.tokens,
                              .experts = cuda_cols(p, n->in[0]),
                              .used = r->used,
                              .always = r->always,
                              .score = r->score,
                              .group = r->group,
                              .groups = r->groups,
                              .groups_used = r->groups_used,
                              .bias_to_logits = r->bias_to_logits,
                              .group_zero = r->group_zero,
                              .normalize = r->normalize,
                              .normalize_eps = r->normalize_eps,
                              .scale = r->scale,
                              .jitter_eps = r->jitter_eps};
    group(p, &args);
}
