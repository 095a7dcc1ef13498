/* SPDX-License-Identifier: Apache-2.0
 * states.c: the recurrent ops: a grid of columns, or heads, and sequences (kernels/states.cu). */
#include "devices/cuda/cuda.h"

enum { THREADS = 128 };

static struct cuda_state state_of(const struct device_plan *p, uint32_t index) {
    const struct cache *cache = &p->graph->cache[index];
    size_t each = p->graph->group[cache->group].state_floats * sizeof(float);
    return (struct cuda_state){.layer = p->kv[cache->group]->p + cache->slot * each,
                               .page_bytes = p->page_bytes[cache->group],
                               .group = cache->group};
}

static void run_columns(struct device_plan *p, enum cuda_kernel k, uint32_t cols,
                        const void *args) {
    struct cuda_grid grid = {(cols + THREADS - 1) / THREADS, p->shape.seqs, 1, THREADS, 0};
    cuda_run_kernel(p, k, grid, args);
}

void cuda_conv1d(struct device_plan *p, const struct node *n) {
    struct cuda_conv1d args = {.state = state_of(p, n->u.conv1d.cache),
                               .step = p->step_memory.device,
                               .x = cuda_value(p, n->in[0]),
                               .w = cuda_info(p, n)->weight,
                               .bias = cuda_info(p, n)->bias[0],
                               .y = cuda_value(p, n->out[0]),
                               .cols = cuda_cols(p, n->out[0]),
                               .kernel = n->u.conv1d.kernel,
                               .apart = n->u.conv1d.step};
    run_columns(p, CUDA_conv1d, args.cols, &args);
}

void cuda_delta(struct device_plan *p, const struct node *n) {
    CUdeviceptr decay = cuda_value(p, n->in[3]);
    struct cuda_delta args = {.state = state_of(p, n->u.delta.cache),
                              .step = p->step_memory.device,
                              .q = cuda_value(p, n->in[0]),
                              .k = cuda_value(p, n->in[1]),
                              .v = cuda_value(p, n->in[2]),
                              .decay = decay ? decay : cuda_info(p, n)->extra[0],
                              .beta = cuda_value(p, n->in[4]),
                              .skip = cuda_info(p, n)->bias[0],
                              .y = cuda_value(p, n->out[0]),
                              .heads = n->u.delta.heads,
                              .k_heads = n->u.delta.k_heads,
                              .k_dim = n->u.delta.k_dim,
                              .v_dim = n->u.delta.v_dim,
                              .delta = n->u.delta.delta,
                              .k_tiled = n->u.delta.k_tiled,
                              .decay_each = n->u.delta.decay_each,
                              .decay_fixed = decay == 0,
                              .scale = n->u.delta.scale};
    struct cuda_grid grid = {args.heads, p->shape.seqs, (args.v_dim + THREADS - 1) / THREADS,
                             THREADS, 0};
    cuda_run_kernel(p, CUDA_delta, grid, &args);
}

void cuda_mlstm(struct device_plan *p, const struct node *n) {
    struct cuda_mlstm args = {.state = state_of(p, n->u.mlstm.cache),
                              .step = p->step_memory.device,
                              .q = cuda_value(p, n->in[0]),
                              .k = cuda_value(p, n->in[1]),
                              .v = cuda_value(p, n->in[2]),
                              .gate = cuda_value(p, n->in[3]),
                              .log_decay = cuda_value(p, n->in[4]),
                              .y = cuda_value(p, n->out[0]),
                              .heads = n->u.mlstm.heads,
                              .k_dim = n->u.mlstm.k_dim,
                              .v_dim = n->u.mlstm.v_dim,
                              .scale = n->u.mlstm.scale,
                              .eps = n->u.mlstm.eps};
    cuda_run_kernel(p, CUDA_mlstm, (struct cuda_grid){args.heads, p->shape.seqs, 1, THREADS, 0},
                    &args);
}

void cuda_compress(struct device_plan *p, const struct node *n) {
    struct cuda_compress args = {.state = state_of(p, n->u.compress.cache),
                                 .step = p->step_memory.device,
                                 .kv = cuda_value(p, n->in[0]),
                                 .gate = cuda_value(p, n->in[1]),
                                 .bias = cuda_info(p, n)->weight,
                                 .y = cuda_value(p, n->out[0]),
                                 .cols = cuda_cols(p, n->out[0]),
                                 .every = n->u.compress.every,
                                 .overlaps = n->u.compress.overlaps};
    run_columns(p, CUDA_compress, args.cols, &args);
}

void cuda_embed_ngrams(struct device_plan *p, const struct node *n) {
    const struct ngram_args *a = &n->u.embed_ngrams.args;
    const struct cuda_weight *w = n->weight[0]->bound;
    struct cuda_ngrams args = {.w = w->matrix,
                               .state = state_of(p, n->u.embed_ngrams.cache),
                               .step = p->step_memory.device,
                               .multiplier = cuda_info(p, n)->extra[0],
                               .size = cuda_info(p, n)->extra[1],
                               .first = cuda_info(p, n)->extra[2],
                               .y = cuda_value(p, n->out[0]),
                               .order = a->order,
                               .heads = a->heads,
                               .end = a->end};
    struct cuda_grid grid = {p->shape.tokens, (a->order - 1) * a->heads, 1, THREADS, 0};
    cuda_run_kernel(p, CUDA_embed_ngrams, grid, &args);
    cuda_run_each(p, CUDA_ngrams_end, p->shape.seqs, &args);
}

void cuda_scan(struct device_plan *p, const struct node *n) {
    struct cuda_scan args = {.state = state_of(p, n->u.scan.cache),
                             .step = p->step_memory.device,
                             .x = cuda_value(p, n->in[0]),
                             .dt = cuda_value(p, n->in[1]),
                             .b = cuda_value(p, n->in[2]),
                             .c = cuda_value(p, n->in[3]),
                             .a = cuda_info(p, n)->weight,
                             .d = cuda_info(p, n)->bias[0],
                             .y = cuda_value(p, n->out[0]),
                             .cols = cuda_cols(p, n->out[0]),
                             .n = n->u.scan.n,
                             .heads = n->u.scan.heads};
    run_columns(p, CUDA_scan, args.cols, &args);
}

static void columns(struct device_plan *p, const struct node *n, uint32_t cache,
                    enum cuda_column_kind kind) {
    struct cuda_column args = {.state = state_of(p, cache),
                               .step = p->step_memory.device,
                               .a = cuda_value(p, n->in[0]),
                               .b = n->inputs > 1 ? cuda_value(p, n->in[1]) : 0,
                               .decay = cuda_info(p, n)->weight,
                               .first = cuda_info(p, n)->bias[0],
                               .y = cuda_value(p, n->out[0]),
                               .cols = cuda_cols(p, n->out[0]),
                               .kind = kind};
    run_columns(p, CUDA_column, args.cols, &args);
}

void cuda_rglru(struct device_plan *p, const struct node *n) {
    columns(p, n, n->u.rglru.cache, COLUMN_RGLRU);
}
void cuda_token_shift(struct device_plan *p, const struct node *n) {
    columns(p, n, n->u.token_shift.cache, COLUMN_SHIFT);
}
void cuda_wkv4(struct device_plan *p, const struct node *n) {
    columns(p, n, n->u.wkv4.cache, COLUMN_WKV4);
}
