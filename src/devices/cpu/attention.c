/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: the step's keys and values are stored first; then every query row attends over the
 * pages of its sequence. Work is cut into units: a tile of adjacent tokens of one sequence with the
 * query heads of one KV head. There are two ways to run them, with the same bits (kernels.h):
 *
 *   many units   a unit is one chunk: it walks its splits, merging each into the rows' states
 *   few units    waves: the (unit, split) pairs of some splits are chunks that leave parts; then
 *                each unit merges its parts in order. This is decode over a long context.
 *
 * Parts of a plan, in rows of attention_part_floats(): states of UNITS_A_THREAD * threads units of
 * ATTENTION_ROWS rows, then the same for the SLOTS_A_THREAD * threads slots of a wave. A thread's
 * scratch holds the kernel's own, then one unit's states and parts for the first way. */
#include <assert.h>

#include "devices/cpu/cpu.h"

enum {
    UNITS_A_THREAD = 4, /* fewer units than this leave threads idle: waves */
    SLOTS_A_THREAD = 16,
    STORE_INLINE = 8,   /* tokens stored without waking the pool */
};

struct attend {
    struct device_plan *plan;
    const struct node *node;
    const struct kernels *kernels;
    char *layer;             /* page 0's block of KV head 0 */
    size_t page_bytes, block_bytes, part_floats;
    uint32_t group;
    uint32_t share;          /* query heads of a KV head */
    uint32_t heads_a_unit;   /* of these, in a unit */
    uint32_t heads_parts;    /* units a tile and KV head make */
    uint32_t tiles, units;
    uint32_t wave_from, wave_splits; /* waves: splits from the unit's first */
};

struct unit {
    const struct cpu_span *tile;
    uint32_t kv_head, head, heads; /* query heads [head, head + heads) */
    uint32_t begin, end;           /* splits */
};

static size_t parts_bytes(uint32_t v_dim) {
    return ATTENTION_ROWS * attention_part_floats(v_dim) * sizeof(float);
}
size_t cpu_attention_scratch(uint32_t k_dim, uint32_t v_dim) {
    return cpu_round64(attention_scratch(k_dim)) + 2 * parts_bytes(v_dim);
}
size_t cpu_attention_parts(const struct cpu_device *device, uint32_t v_dim) {
    return (UNITS_A_THREAD + SLOTS_A_THREAD) * (size_t)device->threads * parts_bytes(v_dim);
}

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void *block_of(const struct attend *a, const struct step_seq *seq, uint32_t page,
                      uint32_t kv_head) {
    uint32_t number = seq->page[a->group][page];
    if (number == NO_PAGE) return NULL;
    return a->layer + number * a->page_bytes + kv_head * a->block_bytes;
}

/* ---- store ---- */

static void store_span(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct attend *a = arg;
    const struct device_plan *p = a->plan;
    uint32_t kv_heads = a->node->u.attention.kv_heads, h = chunk % kv_heads;
    const struct cpu_span *span = &p->span[chunk / kv_heads];
    struct attention_store job = {.k_dim = a->node->u.attention.k_dim,
                                  .v_dim = a->node->u.attention.v_dim,
                                  .slot = span->pos % PAGE_TOKENS,
                                  .rows = span->rows,
                                  .type = p->kv_type};
    job.k_stride = (size_t)kv_heads * job.k_dim;
    job.v_stride = (size_t)kv_heads * job.v_dim;
    job.k = cpu_value(p, a->node->in[1]) + span->row * job.k_stride + (size_t)h * job.k_dim;
    job.v = cpu_value(p, a->node->in[2]) + span->row * job.v_stride + (size_t)h * job.v_dim;
    job.block = block_of(a, span->seq, span->pos / PAGE_TOKENS, h);
    assert(job.block);
    a->kernels->attention_store(&job);
}

static void store(struct attend *a) {
    uint32_t chunks = a->plan->spans * a->node->u.attention.kv_heads;
    if (a->plan->step->tokens <= STORE_INLINE)
        for (uint32_t i = 0; i < chunks; i++) store_span(a, i, 0);
    else
        pool_run(a->plan->device->pool, chunks, store_span, a);
}

/* ---- units ---- */

/* Tiles of one sequence's adjacent tokens; the longest contexts first, so that threads end
 * together. */
static void make_tiles(struct attend *a) {
    const struct step *step = a->plan->step;
    uint32_t tokens = ATTENTION_ROWS / a->heads_a_unit;
    a->tiles = 0;
    for (uint32_t s = 0; s < step->seqs; s++) {
        const struct step_seq *seq = &step->seq[s];
        for (uint32_t left = seq->count; left > 0;) {
            uint32_t rows = min(left, tokens);
            left -= rows;
            a->plan->tile[a->tiles++] = (struct cpu_span){
                .seq = seq, .row = seq->first + left, .rows = rows, .pos = seq->past + left};
        }
    }
    a->units = a->tiles * a->node->u.attention.kv_heads * a->heads_parts;
}

/* The first position that the query at pos sees. */
static uint32_t first_seen(const struct attend *a, uint32_t pos) {
    uint32_t window = a->node->u.attention.window;
    return window > 0 && pos >= window ? pos - window + 1 : 0;
}

static struct unit unit_of(const struct attend *a, uint32_t index) {
    uint32_t part = index % a->heads_parts, rest = index / a->heads_parts;
    uint32_t kv_heads = a->node->u.attention.kv_heads, from = part * a->heads_a_unit;
    struct unit u = {.tile = &a->plan->tile[rest / kv_heads], .kv_head = rest % kv_heads};
    u.head = u.kv_head * a->share + from;
    u.heads = min(a->heads_a_unit, a->share - from);
    u.begin = first_seen(a, u.tile->pos) / ATTENTION_SPLIT;
    u.end = (u.tile->pos + u.tile->rows - 1) / ATTENTION_SPLIT + 1;
    return u;
}

/* Reduces one split of a unit; row r's part is at parts + r * part_floats. */
static void attend_split(const struct attend *a, const struct unit *u, uint32_t split, float *parts,
                         void *scratch) {
    const struct node *n = a->node;
    uint32_t k_dim = n->u.attention.k_dim, base = split * ATTENTION_SPLIT;
    struct attention_row row[ATTENTION_ROWS];
    uint32_t rows = 0;
    for (uint32_t t = 0; t < u->tile->rows; t++) {
        uint32_t pos = u->tile->pos + t, first = first_seen(a, pos);
        const float *q = cpu_value(a->plan, n->in[0]) +
                         ((size_t)(u->tile->row + t) * n->u.attention.heads + u->head) * k_dim;
        for (uint32_t h = 0; h < u->heads; h++, rows++)
            row[rows] = (struct attention_row){.q = q + (size_t)h * k_dim,
                                               .part = parts + rows * a->part_floats,
                                               .begin = first > base ? first - base : 0,
                                               .end = pos >= base ? pos - base + 1 : 0};
    }
    const void *block[ATTENTION_SPLIT / ATTENTION_PAGE];
    uint32_t last = u->tile->pos + u->tile->rows - 1, pages = 0;
    for (; pages < ATTENTION_SPLIT / ATTENTION_PAGE; pages++) {
        if (base + pages * ATTENTION_PAGE > last) break;
        block[pages] = block_of(a, u->tile->seq, base / ATTENTION_PAGE + pages, u->kv_head);
    }
    struct attention_job job = {.k_dim = k_dim,
                                .v_dim = n->u.attention.v_dim,
                                .type = a->plan->kv_type,
                                .scale = n->u.attention.scale,
                                .softcap = n->u.attention.softcap,
                                .block = block,
                                .pages = pages,
                                .row = row,
                                .rows = rows,
                                .scratch = scratch};
    a->kernels->attention(&job);
}

static void clear(const struct attend *a, const struct unit *u, float *states) {
    for (uint32_t r = 0; r < u->tile->rows * u->heads; r++)
        a->kernels->attention_clear(states + r * a->part_floats, a->node->u.attention.v_dim);
}
static void merge(const struct attend *a, const struct unit *u, float *states, const float *parts) {
    for (uint32_t r = 0; r < u->tile->rows * u->heads; r++)
        a->kernels->attention_merge(states + r * a->part_floats, parts + r * a->part_floats,
                                    a->node->u.attention.v_dim);
}
static void finish(const struct attend *a, const struct unit *u, const float *states) {
    uint32_t v_dim = a->node->u.attention.v_dim;
    for (uint32_t r = 0; r < u->tile->rows * u->heads; r++) {
        size_t row = u->tile->row + r / u->heads, head = u->head + r % u->heads;
        float *y = cpu_value(a->plan, a->node->out[0]) +
                   (row * a->node->u.attention.heads + head) * v_dim;
        a->kernels->attention_finish(states + r * a->part_floats, y, v_dim);
    }
}

/* ---- many units ---- */

static void run_unit(void *arg, uint32_t chunk, uint32_t thread) {
    const struct attend *a = arg;
    struct unit u = unit_of(a, chunk);
    char *scratch = cpu_scratch(a->plan, thread);
    size_t used = attention_scratch(a->node->u.attention.k_dim);
    float *states = (float *)(void *)(scratch + cpu_round64(used));
    float *parts = states + ATTENTION_ROWS * a->part_floats;
    clear(a, &u, states);
    for (uint32_t split = u.begin; split < u.end; split++) {
        attend_split(a, &u, split, parts, scratch);
        merge(a, &u, states, parts);
    }
    finish(a, &u, states);
}

/* ---- few units ---- */

static float *unit_states(const struct attend *a, uint32_t unit) {
    return a->plan->parts + (size_t)unit * ATTENTION_ROWS * a->part_floats;
}
static float *wave_parts(const struct attend *a, uint32_t chunk) {
    return unit_states(a, UNITS_A_THREAD * a->plan->device->threads + chunk);
}

static void run_wave_split(void *arg, uint32_t chunk, uint32_t thread) {
    const struct attend *a = arg;
    struct unit u = unit_of(a, chunk / a->wave_splits);
    uint32_t split = u.begin + a->wave_from + chunk % a->wave_splits;
    if (split < u.end)
        attend_split(a, &u, split, wave_parts(a, chunk), cpu_scratch(a->plan, thread));
}

static void merge_wave(void *arg, uint32_t unit, uint32_t thread) {
    (void)thread;
    const struct attend *a = arg;
    struct unit u = unit_of(a, unit);
    float *states = unit_states(a, unit);
    if (a->wave_from == 0) clear(a, &u, states);
    for (uint32_t i = 0; i < a->wave_splits; i++) {
        uint32_t split = u.begin + a->wave_from + i;
        if (split < u.end) merge(a, &u, states, wave_parts(a, unit * a->wave_splits + i));
        if (split + 1 == u.end) finish(a, &u, states);
    }
}

static void run_waves(struct attend *a, uint32_t splits) {
    struct pool *pool = a->plan->device->pool;
    uint32_t slots = SLOTS_A_THREAD * a->plan->device->threads / a->units;
    for (a->wave_from = 0; a->wave_from < splits; a->wave_from += a->wave_splits) {
        a->wave_splits = min(slots, splits - a->wave_from);
        pool_run(pool, a->units * a->wave_splits, run_wave_split, a);
        pool_run(pool, a->units, merge_wave, a);
    }
}

/* ---- the node ---- */

void cpu_attention(struct device_plan *p, const struct node *n) {
    const struct cache *cache = &p->graph->cache[n->u.attention.cache];
    uint32_t kv_heads = n->u.attention.kv_heads, v_dim = n->u.attention.v_dim;
    struct attend a = {.plan = p, .node = n, .kernels = p->device->kernels, .group = cache->group};
    a.page_bytes = p->page_bytes[cache->group];
    a.block_bytes = PAGE_TOKENS * kv_position_bytes(p->kv_type, n->u.attention.k_dim, v_dim);
    a.layer = (char *)p->kv[cache->group]->p + cache->slot * kv_heads * a.block_bytes;
    a.part_floats = attention_part_floats(v_dim);
    a.share = n->u.attention.heads / kv_heads;
    a.heads_a_unit = min(a.share, ATTENTION_ROWS);
    a.heads_parts = (a.share + a.heads_a_unit - 1) / a.heads_a_unit;

    store(&a);
    make_tiles(&a);
    uint32_t splits = 0;
    for (uint32_t i = 0; i < a.units; i++) {
        struct unit u = unit_of(&a, i);
        if (u.end - u.begin > splits) splits = u.end - u.begin;
    }
    if (splits > 1 && a.units < UNITS_A_THREAD * p->device->threads) run_waves(&a, splits);
    else pool_run(p->device->pool, a.units, run_unit, &a);
}
