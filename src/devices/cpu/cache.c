/* SPDX-License-Identifier: Apache-2.0
 * cache.c: where a node's cache lies in the pages, and storing the step's rows in it. */
#include <assert.h>

#include "devices/cpu/cpu.h"

enum { STORE_INLINE = 8 }; /* tokens stored without waking the pool */

struct cpu_cache cpu_cache_of(const struct device_plan *p, uint32_t index) {
    const struct cache *cache = &p->graph->cache[index];
    const struct cache_group *shape = &p->graph->group[cache->group];
    struct cpu_cache c = {.shape = shape, .group = cache->group};
    c.page_bytes = p->page_bytes[cache->group];
    c.block_bytes = PAGE_TOKENS * kv_position_bytes(p->kv_type, shape->k_dim, shape->v_dim);
    c.layer = (char *)p->kv[cache->group]->p + cache->slot * shape->kv_heads * c.block_bytes;
    return c;
}

void *cpu_cache_block(const struct cpu_cache *c, const struct step_seq *seq, uint32_t page,
                      uint32_t kv_head) {
    uint32_t number = seq->page[c->group][page];
    if (number == NO_PAGE) return NULL;
    return c->layer + number * c->page_bytes + kv_head * c->block_bytes;
}

struct source_rows {
    const struct device_plan *plan;
    const struct cpu_cache *cache;
    const float *k, *v;
};

static void store_span(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct source_rows *from = arg;
    const struct device_plan *p = from->plan;
    const struct cache_group *shape = from->cache->shape;
    uint32_t h = chunk % shape->kv_heads, every = shape->every > 1 ? shape->every : 1;
    const struct cpu_span *span = &p->span[chunk / shape->kv_heads];
    uint32_t first = cache_entries(shape, span->pos);
    struct attention_store job = {.k_dim = shape->k_dim,
                                  .v_dim = shape->v_dim,
                                  .slot = first % PAGE_TOKENS,
                                  .rows = cache_entries(shape, span->pos + span->rows) - first,
                                  .type = p->kv_type};
    if (job.rows == 0) return;
    size_t row = span->row + ((size_t)first + 1) * every - 1 - span->pos;
    size_t k_stride = (size_t)shape->kv_heads * job.k_dim;
    size_t v_stride = (size_t)shape->kv_heads * job.v_dim;
    job.k_stride = every * k_stride;
    job.v_stride = every * v_stride;
    job.k = from->k + row * k_stride + (size_t)h * job.k_dim;
    job.v = from->v + row * v_stride + (size_t)h * job.v_dim;
    job.block = cpu_cache_block(from->cache, span->seq, first / PAGE_TOKENS, h);
    assert(job.block);
    p->device->kernels->attention_store(&job);
}

void cpu_cache_store(const struct device_plan *p, const struct cpu_cache *cache, const float *k,
                     const float *v) {
    struct source_rows from = {.plan = p, .cache = cache, .k = k, .v = v};
    uint32_t chunks = p->spans * cache->shape->kv_heads;
    if (p->step->tokens <= STORE_INLINE)
        for (uint32_t i = 0; i < chunks; i++) store_span(&from, i, 0);
    else
        pool_run(p->device->pool, chunks, store_span, &from);
}
