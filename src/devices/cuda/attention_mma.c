/* SPDX-License-Identifier: Apache-2.0
 * attention_mma.c: attention by kernels/attention_mma.cu: which nodes, and how a step is cut.
 * Whether a node is for it depends on the model and the caches' format alone; which of its kernels
 * has a step, on the step: their bits are equal. */
#include <assert.h>

#include "devices/cuda/cuda.h"

enum { SPLIT = CUDA_SPLIT, JOIN_THREADS = 128, JOIN_COLUMNS = 32 };
enum { STEP = 16, FEW_ROWS = 16, FEW_THREADS = 256, MANY_ROWS = 64, MANY_THREADS = 128 };
enum { MANY_TOKENS = 16, MANY_BLOCKS = 64, MANY_SPLITS = 8 }; /* least; least or else most */

static const struct { uint32_t dim; enum cuda_kernel few, many; } kernels[] = {
    {64, CUDA_attention_few_64, CUDA_attention_many_64},
    {128, CUDA_attention_few_128, CUDA_attention_many_128},
    {256, CUDA_attention_few_256, CUDA_attention_many_256}};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static uint32_t blocks(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

/* Queries in two pieces, keys, values, and of few rows the weights in two pieces. */
static uint32_t shared_bytes(int k, uint32_t rows) {
    uint32_t bytes = (2 * rows + 2 * SPLIT) * kernels[k].dim * 2;
    return rows == FEW_ROWS ? bytes + 2 * rows * SPLIT * 2 : bytes;
}

/* The kernels for heads so wide; KERNELS: none. */
static int kernels_for(uint32_t k_dim, uint32_t v_dim) {
    int k = 0;
    while (k < KERNELS && (k_dim > kernels[k].dim || v_dim > kernels[k].dim)) k++;
    return k_dim % STEP == 0 && v_dim % STEP == 0 && v_dim > 0 ? k : KERNELS;
}

bool cuda_attention_is_mma(const struct device_plan *p, const struct node *n) {
    const struct cache_group *g = &p->graph->group[p->graph->cache[n->u.attention.cache].group];
    int k = kernels_for(g->k_dim, g->v_dim);
    bool plain = !n->u.attention.selects && !n->u.attention.beside &&
                 !n->u.attention.by_distance && !n->u.attention.by_key &&
                 !n->u.attention.offsets && !n->u.attention.places;
    return plain && p->kv_type.k == KV_f16 && p->kv_type.v == KV_f16 && k < KERNELS &&
           shared_bytes(k, FEW_ROWS) <= p->device->shared_most;
}

bool cuda_attention_mma_allow(struct cuda_device *d) {
    for (int k = 0; k < KERNELS; k++)
        for (int many = 0; many < 2; many++) {
            uint32_t bytes = shared_bytes(k, many ? MANY_ROWS : FEW_ROWS);
            CUfunction f = d->kernel[many ? kernels[k].many : kernels[k].few];
            if (bytes <= d->shared_most &&
                !cuda_ok(d, d->driver->function_set(f, CUDA_FUNCTION_SHARED_MAX, (int)bytes),
                         "attention's shared memory"))
                return false;
        }
    return true;
}

/* ---- few rows: a block a split, then what they make together ---- */

static bool joins_rows(const struct cuda_attention *a) {
    return a->splits <= JOIN_ROW_SPLITS && a->heads <= JOIN_ROW_HEADS;
}

/* Adds up the parts of the rows; halve: NULL, or where halved rows go if a kernel can do both. */
static void join(struct device_plan *p, const struct cuda_attention *a,
                 const struct cuda_halve *halve) {
    if (halve && joins_rows(a)) {
        struct cuda_attention_row args = {.attention = *a, .halve = *halve};
        struct cuda_grid grid = {a->rows, 1, 1, halve->cols > 2048 ? 1024 : 256, 0};
        cuda_run_kernel(p, CUDA_attention_join_row, grid, &args);
        return;
    }
    struct cuda_grid grid = {a->heads, a->rows, blocks(a->cache.v_dim, JOIN_COLUMNS), JOIN_THREADS,
                             0};
    cuda_run_kernel(p, CUDA_attention_join, grid, a);
}

/* Blocks that share a tile's splits: as many as run at a time, each with as many splits. */
static uint32_t sharing_blocks(const struct device_plan *p, uint32_t tiles, uint32_t splits,
                               uint32_t shared) {
    uint32_t each = p->device->shared_most / shared < 2 ? 1 : 2; /* by shared memory, registers */
    uint32_t at_once = p->device->processors * each;
    uint32_t most = at_once > tiles ? at_once / tiles : 1;
    return blocks(splits, blocks(splits, most));
}

static void run_few(struct device_plan *p, struct cuda_attention *a, int k,
                    const struct cuda_halve *halve) {
    cuda_attention_tiles(p, a, FEW_ROWS);
    uint32_t parts = blocks(a->share, a->tile_heads);
    struct cuda_grid grid = {p->shape.seqs * a->seq_tiles, a->cache.kv_heads * parts, 1,
                             FEW_THREADS, shared_bytes(k, FEW_ROWS)};
    grid.z = sharing_blocks(p, grid.x * grid.y, a->splits, grid.shared);
    size_t row = (size_t)a->heads * a->splits * (2 + (size_t)a->cache.v_dim) * sizeof(float);
    assert(row > 0);
    uint32_t most = cuda_rows_at_once(p, row);
    for (a->row0 = 0; a->row0 < p->shape.tokens; a->row0 += a->rows) {
        uint32_t left = p->shape.tokens - a->row0;
        a->rows = left < most ? left : most;
        cuda_run_kernel(p, kernels[k].few, grid, a);
        join(p, a, halve);
    }
}

/* ---- many rows ---- */

static bool run_many(struct device_plan *p, struct cuda_attention *a, int k) {
    uint32_t shared = shared_bytes(k, MANY_ROWS);
    if (p->shape.longest < MANY_TOKENS || shared > p->device->shared_most) return false;
    cuda_attention_tiles(p, a, MANY_ROWS);
    a->row0 = 0;
    a->rows = p->shape.tokens;
    struct cuda_grid grid = {a->cache.kv_heads * blocks(a->share, a->tile_heads),
                             p->shape.seqs * a->seq_tiles, 1, MANY_THREADS, shared};
    bool enough = grid.x * grid.y >= MANY_BLOCKS || a->splits <= MANY_SPLITS;
    if (!enough || grid.y > UINT16_MAX) return false;
    cuda_run_kernel(p, kernels[k].many, grid, a);
    return true;
}

void cuda_attention_mma(struct device_plan *p, const struct node *n, struct cuda_attention *a) {
    int k = kernels_for(a->cache.k_dim, a->cache.v_dim);
    bool halves = cuda_info(p, n)->halves;
    struct cuda_halve halve;
    if (halves) halve = cuda_halve_args(p, n->out[0]);
    if (run_many(p, a, k)) {
        if (halves) cuda_halve(p, n->out[0]);
        return;
    }
    run_few(p, a, k, halves ? &halve : NULL);
    if (halves && !joins_rows(a)) cuda_halve(p, n->out[0]);
}
