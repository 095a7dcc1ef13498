/* SPDX-License-Identifier: Apache-2.0
 * index.c: one node that chooses what to attend to: its keys are stored, then as many rows at a
 * time are scored and picked as the parts' memory holds. */
#include "devices/cuda/cuda.h"

enum { THREADS = 128, PICK_THREADS = 256, BLOCKS_A_ROW = 64 };

static uint32_t lists_of(const struct node *n) {
    return n->u.index_select.block && !n->u.index_select.whole ? n->u.index_select.heads : 1;
}

/* Scores of one row over all positions that the cache's pages hold. */
size_t cuda_index_parts(const struct device_plan *p, const struct node *n) {
    uint32_t group = p->graph->cache[n->u.index_select.cache].group;
    size_t positions = p->kv[group]->bytes / p->page_bytes[group] * PAGE_TOKENS;
    return lists_of(n) * (positions + CUDA_SPLIT) * sizeof(float); /* cuda_shape.end */
}

void cuda_index_select(struct device_plan *p, const struct node *n) {
    bool blocks = n->u.index_select.block > 0;
    struct cuda_index args = {.cache = cuda_cache_of(p, n->u.index_select.cache),
                              .step = p->step_memory.device,
                              .q = cuda_value(p, n->in[0]),
                              .weights = blocks ? 0 : cuda_value(p, n->in[2]),
                              .scores = p->parts,
                              .y = cuda_value(p, n->out[0]),
                              .kind = n->u.index_select.whole ? INDEX_WHOLE
                                      : blocks                ? INDEX_BLOCKS
                                                              : INDEX_ENTRIES,
                              .heads = n->u.index_select.heads,
                              .dim = n->u.index_select.dim,
                              .used = n->u.index_select.used,
                              .block = n->u.index_select.block,
                              .local = n->u.index_select.local,
                              .lists = lists_of(n)};
    args.cols = cuda_cols(p, n->out[0]) / args.lists;
    args.entries = p->shape.end / args.cache.every;
    cuda_cache_store(p, &args.cache, cuda_value(p, n->in[1]), 0);
    size_t row = (size_t)args.lists * args.entries * sizeof(float);
    uint32_t most = cuda_rows_at_once(p, row);
    uint32_t shared = args.heads * args.dim * (uint32_t)sizeof(float);
    for (args.row0 = 0; args.row0 < p->shape.tokens; args.row0 += args.rows) {
        uint32_t left = p->shape.tokens - args.row0;
        args.rows = left < most ? left : most;
        cuda_run_kernel(p, CUDA_index_scores,
                        (struct cuda_grid){BLOCKS_A_ROW, args.rows, args.lists, THREADS, shared},
                        &args);
        cuda_run_kernel(p, CUDA_index_pick,
                        (struct cuda_grid){args.rows, args.lists, 1, PICK_THREADS, 0}, &args);
    }
}
