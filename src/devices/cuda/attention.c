/* SPDX-License-Identifier: Apache-2.0
 * attention.c: one node: storing, then as many rows at a time as the parts' memory holds. */
#include <assert.h>

#include "devices/cuda/cuda.h"

enum { SPLIT = CUDA_SPLIT, THREADS = 128, SPLIT_THREADS = 128 };

static size_t part_bytes(const struct cache_group *g) {
    return (2 + (size_t)g->v_dim) * sizeof(float);
}

static const struct cache_group *group_of(const struct device_plan *p, const struct node *n) {
    return &p->graph->group[p->graph->cache[n->u.attention.cache].group];
}

/* One row over as many positions as the cache's pages hold. */
size_t cuda_attention_parts(const struct device_plan *p, const struct node *n) {
    uint32_t group = p->graph->cache[n->u.attention.cache].group;
    size_t positions = p->kv[group]->bytes / p->page_bytes[group] * PAGE_TOKENS;
    size_t splits = positions / SPLIT + 1;
    if (n->u.attention.beside) splits *= 2;
    return n->u.attention.heads * splits * part_bytes(group_of(p, n));
}

struct cuda_cache cuda_cache_of(const struct device_plan *p, uint32_t index) {
    const struct cache *cache = &p->graph->cache[index];
    const struct cache_group *g = &p->graph->group[cache->group];
    struct cuda_cache c = {.page_bytes = p->page_bytes[cache->group],
                           .group = cache->group,
                           .kv_heads = g->kv_heads,
                           .k_dim = g->k_dim,
                           .v_dim = g->v_dim,
                           .k_type = p->kv_type.k,
                           .v_type = p->kv_type.v,
                           .every = g->every > 1 ? g->every : 1};
    c.k_bytes = (uint32_t)quant_row_bytes(kv_quant(p->kv_type.k), g->k_dim);
    c.v_bytes = g->v_dim ? (uint32_t)quant_row_bytes(kv_quant(p->kv_type.v), g->v_dim) : 0;
    c.v_at = (uint64_t)PAGE_TOKENS * c.k_bytes;
    c.block_bytes = c.v_at + (uint64_t)PAGE_TOKENS * c.v_bytes;
    c.layer = p->kv[cache->group]->p + cache->slot * g->kv_heads * c.block_bytes;
    return c;
}

void cuda_cache_store(struct device_plan *p, const struct cuda_cache *cache, CUdeviceptr k,
                      CUdeviceptr v) {
    struct cuda_store args = {.cache = *cache,
                              .step = p->step_memory.device,
                              .k = k,
                              .v = v};
    struct cuda_grid grid = {p->shape.tokens, cache->kv_heads, 1, THREADS, 0};
    cuda_run_kernel(p, CUDA_attention_store, grid, &args);
}

/* q and k are turned on the way. */
static void rope_and_store(struct device_plan *p, const struct node *n,
                           const struct cuda_cache *cache) {
    const struct cuda_node *info = cuda_info(p, n);
    struct cuda_rope_store args = {.q = cuda_rope_args(p, info->rope[0]),
                                   .k = cuda_rope_args(p, info->rope[1]),
                                   .store = {.cache = *cache,
                                             .step = p->step_memory.device,
                                             .v = cuda_value(p, n->in[2])}};
    args.k.y = 0;
    for (int i = 0; i < 2; i++)
        if (info->norm[i]) args.norm[i] = cuda_rms_args(p, info->norm[i]);
    uint32_t heads = args.q.heads + 2 * cache->kv_heads;
    cuda_run_kernel(p, CUDA_rope_store, (struct cuda_grid){p->shape.tokens, heads, 1, 64, 0},
                    &args);
}

/* Splits up to the last entry that any row sees. */
static uint32_t splits_of(const struct device_plan *p, uint32_t every) {
    return (p->shape.end / every + SPLIT - 1) / SPLIT;
}

/* ---- launching ---- */

enum { TILE_MOST = 16 };

/* A block's rows: the heads of a KV head, of as many tokens as fit; in steps of few tokens a block
 * is a token. */
void cuda_attention_tiles(const struct device_plan *p, struct cuda_attention *a, uint32_t rows) {
    uint32_t most = p->shape.longest;
    a->share = a->heads / a->cache.kv_heads;
    assert(a->share > 0); /* cuda_supports() */
    a->tile_heads = a->share < rows ? a->share : rows;
    a->tile_tokens = rows / a->tile_heads;
    if (a->tile_tokens > most) a->tile_tokens = most;
    assert(a->tile_tokens > 0);
    a->seq_tiles = (most + a->tile_tokens - 1) / a->tile_tokens;
}

static const struct { enum cuda_kernel kernel; uint32_t rows; } split[] = {
    {CUDA_attention_split_2, 2}, {CUDA_attention_split_8, 8}, {CUDA_attention_split_16, 16}};
enum { SPLIT_KERNELS = sizeof split / sizeof split[0] };

static uint32_t split_shared(uint32_t rows, uint32_t k_dim) {
    return (rows * (k_dim + SPLIT) + 4) * (uint32_t)sizeof(float);
}

bool cuda_attention_allow(struct device_plan *p, const struct node *n) {
    struct cuda_device *d = p->device;
    if (cuda_attention_is_mma(p, n)) return cuda_attention_mma_allow(d);
    for (int i = 0; i < SPLIT_KERNELS; i++) {
        uint32_t shared = split_shared(split[i].rows, n->u.attention.k_dim);
        if (shared <= d->split_shared[i]) continue;
        d->split_shared[i] = shared;
        if (!cuda_ok(d, d->driver->function_set(d->kernel[split[i].kernel],
                                                CUDA_FUNCTION_SHARED_MAX, (int)shared),
                     "attention's shared memory"))
            return false;
    }
    return true;
}

static void run_splits(struct device_plan *p, struct cuda_attention *a) {
    uint32_t tile = a->tile_heads * a->tile_tokens;
    int size = tile <= 2 ? 0 : tile <= 8 ? 1 : 2;
    enum cuda_kernel kernel = split[size].kernel;
    uint32_t shared = split_shared(split[size].rows, a->cache.k_dim);
    uint32_t heads_parts = (a->share + a->tile_heads - 1) / a->tile_heads;
    struct cuda_grid grid = {p->shape.seqs * a->seq_tiles, a->cache.kv_heads * heads_parts,
                             a->splits, SPLIT_THREADS, shared};
    size_t row = (size_t)a->heads * a->splits * (2 + (size_t)a->cache.v_dim) * sizeof(float);
    assert(row > 0);
    uint32_t most = cuda_rows_at_once(p, row);
    for (a->row0 = 0; a->row0 < p->shape.tokens; a->row0 += a->rows) {
        uint32_t left = p->shape.tokens - a->row0;
        a->rows = left < most ? left : most;
        cuda_run_kernel(p, kernel, grid, a);
        cuda_run_kernel(p, CUDA_attention_merge,
                        (struct cuda_grid){a->heads, a->rows, 1, THREADS, 0}, a);
    }
}

/* ---- the node ---- */

static CUdeviceptr input(const struct device_plan *p, const struct node *n, uint32_t which) {
    return which ? cuda_value(p, n->in[which]) : 0;
}

void cuda_attention(struct device_plan *p, const struct node *n) {
    const struct cuda_node *info = cuda_info(p, n);
    uint32_t heads = n->u.attention.heads;
    struct cuda_attention args = {.cache = cuda_cache_of(p, n->u.attention.cache),
                                  .step = p->step_memory.device,
                                  .q = cuda_value(p, n->in[0]),
                                  .sinks = info->weight,
                                  .token_sinks = input(p, n, n->u.attention.sinks),
                                  .alibi = info->extra[0],
                                  .offsets = info->extra[1],
                                  .by_distance = input(p, n, n->u.attention.by_distance),
                                  .by_key = input(p, n, n->u.attention.by_key),
                                  .places = info->extra[2],
                                  .parts = p->parts,
                                  .y = cuda_value(p, n->out[0]),
                                  .own = splits_of(p, 1),
                                  .heads = heads,
                                  .window = n->u.attention.window,
                                  .chunk = n->u.attention.chunk,
                                  .bidirectional = n->u.attention.bidirectional,
                                  .reach = n->u.attention.reach,
                                  .scale = n->u.attention.scale,
                                  .softcap = n->u.attention.softcap};
    if (n->u.attention.selects) {
        value_id list = n->in[n->u.attention.selection];
        args.selected = cuda_value(p, list);
        args.choices = n->u.attention.selections;
        args.choice = cuda_cols(p, list) / args.choices;
    }
    uint32_t biases = args.by_distance ? n->u.attention.by_distance : n->u.attention.by_key;
    if (biases) args.distances = cuda_cols(p, n->in[biases]) / heads;
    if (args.offsets) args.distances = 2 * args.reach + 1;
    if (info->rope[0]) rope_and_store(p, n, &args.cache);
    else if (!n->u.attention.shares)
        cuda_cache_store(p, &args.cache, cuda_value(p, n->in[1]), cuda_value(p, n->in[2]));
    args.splits = args.own;
    if (n->u.attention.beside) {
        args.beside = cuda_cache_of(p, n->u.attention.beside_cache);
        args.splits += splits_of(p, args.beside.every);
        CUdeviceptr rows = cuda_value(p, n->in[n->u.attention.beside]);
        cuda_cache_store(p, &args.beside, rows, rows);
    }

    if (cuda_attention_is_mma(p, n)) {
        cuda_attention_mma(p, n, &args);
        return;
    }
    cuda_attention_tiles(p, &args, TILE_MOST);
    run_splits(p, &args);
}
