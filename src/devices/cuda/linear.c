/* SPDX-License-Identifier: Apache-2.0
 * linear.c: products: of all tokens, of heads. See kernels/linear.cu, thin.cu and mma.cu. */
#include "devices/cuda/cuda.h"

enum { ROWS = 8, TOKENS = 4, THREADS = 256, /* as in linear.cu */ WARP = 32 };

static const struct cuda_weight *bound(const struct weight *w) { return w->bound; }

static uint32_t blocks(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

static struct cuda_linear linear_args(const struct device_plan *p, const struct node *n,
                                      uint32_t i) {
    return (struct cuda_linear){.w = bound(n->weight[i])->matrix,
                                .x = cuda_value(p, n->in[0]),
                                .bias = cuda_info(p, n)->bias[i],
                                .y = cuda_value(p, n->out[i]),
                                .tokens = cuda_rows(p, n->out[i]),
                                .x_stride = cuda_cols(p, n->in[0]),
                                .y_stride = cuda_cols(p, n->out[i])};
}

/* ---- on tensor cores ---- */

enum { SEGMENT = 256, GROUP = 8, TILE = 16, FEW = 8, SOME = 32, MORE = 64 };
/* A block's tokens and rows, as in mma.cu; of MORE tokens a step has enough blocks only if they are
 * small. */
enum { MORE_TOKENS = 32, MORE_ROWS = 64, MORE_THREADS = 128, MANY_TOKENS = 64, MANY_ROWS = 256 };
enum { ENOUGH = 264 /* blocks, two for each SM of an H200 */ };
enum { SEGMENT_BYTES = GROUP * SEGMENT * 2, SHARED = 200 << 10 };

size_t cuda_act_bytes(uint32_t cols, uint32_t rows) {
    return (size_t)blocks(rows, GROUP) * blocks(cols, SEGMENT) * SEGMENT_BYTES;
}

struct cuda_halve cuda_halve_args(const struct device_plan *p, value_id v) {
    return (struct cuda_halve){.x = cuda_value(p, v),
                               .y = p->act,
                               .scale = p->act_scale,
                               .cols = cuda_cols(p, v),
                               .x_stride = cuda_cols(p, v)};
}

void cuda_halve(struct device_plan *p, value_id v) {
    struct cuda_halve args = cuda_halve_args(p, v);
    struct cuda_grid grid = {cuda_rows(p, v), 1, 1, args.cols > 2048 ? 1024 : 256, 0};
    cuda_run_kernel(p, CUDA_halve, grid, &args);
}

/* Blocks of `rows` rows of all the weights. */
static uint32_t cut(struct cuda_mma *a, uint32_t rows) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < a->weights; i++) {
        a->weight[i].blocks = blocks(a->weight[i].rows, rows);
        all += a->weight[i].blocks;
    }
    return all;
}

static void multiply(struct device_plan *p, enum quant_index quant, struct cuda_mma *a) {
    uint32_t part = blocks(a->cols, SEGMENT) * TILE * GROUP * (uint32_t)sizeof(float);
    bool few = a->tokens <= FEW && part <= SHARED;
    /* Large tiles only where they are enough for all of a large GPU. */
    bool thin = blocks(a->tokens, MORE_TOKENS) * cut(a, MORE_ROWS) < ENOUGH;
    bool some = !few && a->tokens <= (thin ? MORE : SOME) && part * (SOME / FEW) <= SHARED;
    if (few || some) {
        /* Segments go round the warps: as many of these as there are, where that is no more than
         * their registers allow; sums are added in order of the segments. */
        uint32_t segments = blocks(a->cols, SEGMENT);
        uint32_t threads = segments > 32 ? 2 * THREADS : THREADS;
        if (few && segments * WARP > threads) threads = segments * WARP;
        if (threads > 2 * THREADS) threads = 2 * THREADS;
        struct cuda_grid grid = {cut(a, TILE), blocks(a->tokens, SOME), 1, threads,
                                 few ? part : part * (SOME / FEW)};
        cuda_launch(p, few ? p->device->mma[quant].few : p->device->mma[quant].some, grid, a);
        return;
    }
    if (a->tokens <= MORE || blocks(a->tokens, MANY_TOKENS) * cut(a, MANY_ROWS) < ENOUGH) {
        struct cuda_grid grid = {blocks(a->tokens, MORE_TOKENS), cut(a, MORE_ROWS), 1,
                                 MORE_THREADS, 2 * MORE_TOKENS / GROUP * SEGMENT_BYTES};
        cuda_launch(p, p->device->mma[quant].more, grid, a);
        return;
    }
    struct cuda_grid grid = {blocks(a->tokens, MANY_TOKENS), cut(a, MANY_ROWS), 1, THREADS,
                             2 * MANY_TOKENS / GROUP * SEGMENT_BYTES};
    cuda_launch(p, p->device->mma[quant].many, grid, a);
}

static void add_weight(const struct device_plan *p, const struct node *n, uint32_t i,
                       struct cuda_mma *a) {
    const struct cuda_weight *w = bound(n->weight[i]);
    const struct node *add = cuda_info(p, n)->add;
    value_id other = !add ? NO_VALUE : add->in[add->in[0] == n->out[i]];
    a->weight[a->weights++] = (struct cuda_mma_weight){.data = w->data,
                                                       .bias = cuda_info(p, n)->bias[i],
                                                       .add = cuda_value(p, other),
                                                       .y = cuda_value(p, add ? add->out[0]
                                                                              : n->out[i]),
                                                       .row_bytes = w->matrix.row_bytes,
                                                       .rows = w->matrix.rows,
                                                       .by = w->by,
                                                       .undo = 1 / w->by};
}

/* Weights of one format go together. */
static void multiply_all(struct device_plan *p, const struct node *n) {
    bool done[NODE_OUTPUTS] = {false};
    for (uint32_t i = 0; i < n->outputs; i++) {
        uint32_t quant = bound(n->weight[i])->matrix.quant;
        struct cuda_mma args = {.x = p->act,
                                .scale = p->act_scale,
                                .cols = cuda_cols(p, n->in[0]),
                                .tokens = cuda_rows(p, n->out[i])};
        for (uint32_t k = i; k < n->outputs; k++) {
            const struct cuda_weight *w = bound(n->weight[k]);
            if (done[k] || w->by == 0 || w->matrix.quant != quant) continue;
            add_weight(p, n, k, &args);
            done[k] = true;
        }
        if (args.weights) multiply(p, quant, &args);
    }
}

bool cuda_is_halving(const struct node *n) {
    bool some = false;
    for (uint32_t i = 0; i < n->outputs; i++)
        some |= (n->op == OP_linear && bound(n->weight[i])->by > 0) ||
                (n->op == OP_linear_experts && bound(n->weight[i])->each != 0);
    return some;
}

/* ---- in FP32 ---- */

/* By the weight alone: thin.cu adds in another order. */
static bool is_thin(const struct device_plan *p, const struct cuda_matrix *w) {
    enum { THIN = 1024 };
    return p->device->thin[w->quant].one && w->rows <= THIN && w->cols % 4 == 0;
}

static void multiply_thin(struct device_plan *p, const struct cuda_linear *args) {
    enum { TOKENS_FEW = 64, WARP_THREADS = 32, SMALL = 4 * WARP_THREADS, EACH = 4 };
    uint32_t tokens = args->tokens, rows = args->w.rows, quant = args->w.quant;
    struct cuda_grid grid = {blocks(rows, EACH), tokens, 1, SMALL, 0};
    if (tokens == 1) {
        cuda_launch(p, p->device->thin[quant].one, grid, args);
    } else if (tokens <= TOKENS_FEW) {
        grid.y = blocks(tokens, EACH);
        cuda_launch(p, p->device->thin[quant].few, grid, args);
    } else {
        grid = (struct cuda_grid){blocks(rows, EACH * ROWS), blocks(tokens, EACH), 1, THREADS, 0};
        cuda_launch(p, p->device->thin[quant].many, grid, args);
    }
}

void cuda_linear(struct device_plan *p, const struct node *n) {
    if (cuda_is_halving(n)) {
        if (!cuda_info(p, n)->halved) cuda_halve(p, n->in[0]);
        multiply_all(p, n);
    }
    for (uint32_t i = 0; i < n->outputs; i++) {
        if (bound(n->weight[i])->by > 0) continue;
        struct cuda_linear args = linear_args(p, n, i);
        if (is_thin(p, &args.w)) {
            multiply_thin(p, &args);
            continue;
        }
        struct cuda_grid grid = {blocks(args.w.rows, ROWS), blocks(args.tokens, TOKENS), 1,
                                 THREADS, 0};
        cuda_launch(p, p->device->linear[args.w.quant], grid, &args);
    }
}

void cuda_linear_heads(struct device_plan *p, const struct node *n) {
    struct cuda_linear args = linear_args(p, n, 0);
    struct cuda_grid grid = {blocks(args.w.rows, ROWS), args.tokens, args.w.matrices, THREADS, 0};
    cuda_launch(p, p->device->linear_heads[args.w.quant], grid, &args);
}
