/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: the step's keys and values are stored first, unless an earlier node has stored what
 * this one reads; then every query row attends over the pages of its sequence, or over what it has
 * chosen of them, and then over what there is beside them. Work is cut into units: a tile of
 * adjacent tokens of one sequence with the query heads of one KV head. There are two ways to run
 * them, with the same bits (kernels.h):
 *
 *   many units   a unit is one chunk: it walks its splits, merging each into the rows' states
 *   few units    waves: the (unit, split) pairs of some splits are chunks that leave parts; then
 *                each unit merges its parts in order. This is decode over a long context.
 *
 * Parts of a plan, in rows of attention_part_floats(): states of UNITS_A_THREAD * threads units of
 * ATTENTION_ROWS rows, then the same for the SLOTS_A_THREAD * threads slots of a wave. A thread's
 * scratch holds the kernel's own, then one unit's states and parts for the first way. */
#include "devices/cpu/cpu.h"

enum {
    UNITS_A_THREAD = 4, /* fewer units than this leave threads idle: waves */
    SLOTS_A_THREAD = 16,
    SPLIT_PAGES = ATTENTION_SPLIT / ATTENTION_PAGE
};

/* Keys and values, and what tokens have chosen of them. */
struct keys {
    struct cpu_cache cache;
    const float *selected;   /* [tokens, choices, choice] or NULL */
    uint32_t choices, choice;
};

struct attend {
    struct device_plan *plan;
    const struct node *node;
    const struct kernels *kernels;
    struct keys keys, beside; /* beside: without a shape if there is none */
    size_t part_floats;
    const float *sinks;      /* [heads] or NULL */
    const float *token_sinks; /* [tokens, heads] or NULL */
    const float *by_distance; /* [tokens, heads, distances] or NULL */
    const float *by_key;     /* [tokens, heads, distances] of the keys' tokens, or NULL */
    uint32_t distances;
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
    uint32_t own;                  /* the first of those beside */
};

static size_t parts_bytes(uint32_t v_dim) {
    return ATTENTION_ROWS * attention_part_floats(v_dim) * sizeof(float);
}
/* The kernel's, states, parts, and a split's offsets for each row (struct attend.by_key). */
size_t cpu_attention_scratch(uint32_t k_dim, uint32_t v_dim) {
    return cpu_round64(attention_scratch(k_dim)) + 2 * parts_bytes(v_dim) +
           (size_t)ATTENTION_ROWS * ATTENTION_SPLIT * sizeof(float);
}
static float *split_offsets(const struct node *n, void *scratch) {
    char *kernel = scratch;
    return (float *)(void *)(kernel + cpu_round64(attention_scratch(n->u.attention.k_dim)) +
                             2 * parts_bytes(n->u.attention.v_dim));
}
size_t cpu_attention_parts(const struct cpu_device *device, uint32_t v_dim) {
    return (UNITS_A_THREAD + SLOTS_A_THREAD) * (size_t)device->threads * parts_bytes(v_dim);
}

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

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

/* The query at pos sees positions [first_seen, end_seen); neither falls as pos rises. */
static uint32_t first_seen(const struct attend *a, uint32_t pos) {
    uint32_t window = a->node->u.attention.window, chunk = a->node->u.attention.chunk;
    if (chunk > 0) return pos - pos % chunk;
    if (window == 0) return 0;
    uint32_t back = a->node->u.attention.bidirectional ? window / 2 : window - 1;
    return pos > back ? pos - back : 0;
}
static uint32_t end_seen(const struct attend *a, const struct step_seq *seq, uint32_t pos) {
    if (!a->node->u.attention.bidirectional) return pos + 1;
    uint32_t end = seq->past + seq->count, window = a->node->u.attention.window;
    return window > 0 && end - pos > window / 2 ? pos + window / 2 + 1 : end;
}
static uint32_t tile_end(const struct attend *a, const struct cpu_span *tile) {
    return end_seen(a, tile->seq, tile->pos + tile->rows - 1);
}

/* What a query before position `end` sees beside the keys: entries below this. */
static uint32_t entries_seen(const struct attend *a, uint32_t end) {
    return cache_entries(a->beside.cache.shape, end);
}

static struct unit unit_of(const struct attend *a, uint32_t index) {
    uint32_t part = index % a->heads_parts, rest = index / a->heads_parts;
    uint32_t kv_heads = a->node->u.attention.kv_heads, from = part * a->heads_a_unit;
    struct unit u = {.tile = &a->plan->tile[rest / kv_heads], .kv_head = rest % kv_heads};
    u.head = u.kv_head * a->share + from;
    u.heads = min(a->heads_a_unit, a->share - from);
    u.begin = first_seen(a, u.tile->pos) / ATTENTION_SPLIT;
    u.end = u.own = (tile_end(a, u.tile) - 1) / ATTENTION_SPLIT + 1;
    if (a->beside.cache.shape)
        u.end += (entries_seen(a, tile_end(a, u.tile)) + ATTENTION_SPLIT - 1) / ATTENTION_SPLIT;
    return u;
}

/* The bits of what a token has chosen of the split at base; its list ascends. */
static const uint64_t *split_choice(const struct keys *keys, uint32_t token, uint32_t kv_head,
                                    uint32_t base, uint64_t sees[SPLIT_PAGES]) {
    if (!keys->selected) return NULL;
    size_t at_list = (size_t)token * keys->choices + (keys->choices > 1 ? kv_head : 0);
    const float *list = keys->selected + at_list * keys->choice;
    uint32_t from = 0, to = keys->choice; /* the first not below base lies in [from, to] */
    while (from < to) {
        uint32_t middle = (from + to) / 2;
        if (list[middle] < (float)base) from = middle + 1;
        else to = middle;
    }
    for (int i = 0; i < SPLIT_PAGES; i++) sees[i] = 0;
    for (; from < keys->choice && list[from] < (float)(base + ATTENTION_SPLIT); from++) {
        uint32_t at = (uint32_t)list[from] - base;
        sees[at / ATTENTION_PAGE] |= (uint64_t)1 << at % ATTENTION_PAGE;
    }
    return sees;
}

/* The scores' offsets of one query and head, at ATTENTION_SPLIT - 1 - position, for the positions
 * of the split that it sees. */
static void fill_offsets(const struct attend *a, const struct step_seq *seq, uint32_t pos,
                         uint32_t base, const struct attention_row *row, size_t at, uint32_t head,
                         float *out) {
    const uint32_t *place = a->node->u.attention.places + a->node->u.attention.reach;
    const float *own = a->by_distance ? a->by_distance + at * a->distances : NULL;
    uint32_t heads = a->node->u.attention.heads;
    for (uint32_t p = row->begin; p < row->end && p < ATTENTION_SPLIT; p++) {
        uint32_t key = base + p, here = place[(int32_t)pos - (int32_t)key];
        size_t token = seq->first + key - seq->past;
        float x = own ? own[here] : 0;
        if (a->by_key) x += a->by_key[(token * heads + head) * a->distances + here];
        out[ATTENTION_SPLIT - 1 - p] = x;
    }
}

/* Reduces one split of a unit; row r's part is at parts + r * part_floats. */
static void attend_split(const struct attend *a, const struct unit *u, uint32_t split, float *parts,
                         void *scratch) {
    const struct node *n = a->node;
    bool beside = split >= u->own;
    const struct keys *keys = beside ? &a->beside : &a->keys;
    uint32_t k_dim = n->u.attention.k_dim;
    uint32_t base = (beside ? split - u->own : split) * ATTENTION_SPLIT;
    const float *alibi = n->u.attention.alibi, *offsets = n->u.attention.offsets;
    struct attention_row row[ATTENTION_ROWS];
    uint64_t choice[ATTENTION_ROWS][SPLIT_PAGES];
    uint32_t rows = 0;
    for (uint32_t t = 0; t < u->tile->rows; t++) {
        uint32_t pos = u->tile->pos + t, first = beside ? 0 : first_seen(a, pos);
        uint32_t end = beside ? entries_seen(a, pos + 1) : end_seen(a, u->tile->seq, pos);
        const uint64_t *sees = split_choice(keys, u->tile->row + t, u->kv_head, base, choice[t]);
        const float *q = cpu_value(a->plan, n->in[0]) +
                         ((size_t)(u->tile->row + t) * n->u.attention.heads + u->head) * k_dim;
        for (uint32_t h = 0; h < u->heads; h++, rows++) {
            size_t at = (size_t)(u->tile->row + t) * n->u.attention.heads + u->head + h;
            row[rows] = (struct attention_row){.q = q + (size_t)h * k_dim,
                                               .part = parts + rows * a->part_floats,
                                               .begin = first > base ? first - base : 0,
                                               .end = end > base ? end - base : 0,
                                               .sees = sees,
                                               .slope = alibi ? alibi[u->head + h] : 0,
                                               .at = (int32_t)pos - (int32_t)base};
            if (a->by_distance) row[rows].by_distance = a->by_distance + at * a->distances;
            row[rows].distances = a->distances;
            if (n->u.attention.places) {
                float *room = split_offsets(n, scratch) + (size_t)rows * ATTENTION_SPLIT;
                fill_offsets(a, u->tile->seq, pos, base, &row[rows], at, u->head + h, room);
                row[rows].by_distance = room;
                row[rows].distances = ATTENTION_SPLIT;
                row[rows].at = ATTENTION_SPLIT - 1;
            }
            if (!offsets) continue;
            row[rows].by_distance = offsets + (size_t)(u->head + h) * a->distances;
            row[rows].at += (int32_t)n->u.attention.reach; /* later keys' distances are below 0 */
        }
    }
    const void *block[SPLIT_PAGES];
    uint32_t end = tile_end(a, u->tile), pages = 0;
    if (beside) end = entries_seen(a, end);
    for (; pages < SPLIT_PAGES; pages++) {
        if (base + pages * ATTENTION_PAGE >= end) break;
        block[pages] =
            cpu_cache_block(&keys->cache, u->tile->seq, base / ATTENTION_PAGE + pages, u->kv_head);
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
static void finish(const struct attend *a, const struct unit *u, float *states) {
    uint32_t v_dim = a->node->u.attention.v_dim;
    for (uint32_t r = 0; r < u->tile->rows * u->heads; r++) {
        size_t row = u->tile->row + r / u->heads, head = u->head + r % u->heads;
        float *y = cpu_value(a->plan, a->node->out[0]) +
                   (row * a->node->u.attention.heads + head) * v_dim;
        float *state = states + r * a->part_floats;
        if (a->sinks) a->kernels->attention_sink(state, a->sinks[head], v_dim);
        if (a->token_sinks)
            a->kernels->attention_sink(
                state, a->token_sinks[row * a->node->u.attention.heads + head], v_dim);
        a->kernels->attention_finish(state, y, v_dim);
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
    uint32_t kv_heads = n->u.attention.kv_heads, v_dim = n->u.attention.v_dim;
    struct attend a = {.plan = p, .node = n, .kernels = p->device->kernels};
    a.keys.cache = cpu_cache_of(p, n->u.attention.cache);
    if (n->u.attention.beside) a.beside.cache = cpu_cache_of(p, n->u.attention.beside_cache);
    a.part_floats = attention_part_floats(v_dim);
    a.sinks = cpu_info(p, n)->weight;
    a.share = n->u.attention.heads / kv_heads;
    a.heads_a_unit = min(a.share, ATTENTION_ROWS);
    a.heads_parts = (a.share + a.heads_a_unit - 1) / a.heads_a_unit;

    if (n->u.attention.selects) {
        value_id list = n->in[n->u.attention.selection];
        struct keys *of = n->u.attention.beside ? &a.beside : &a.keys;
        of->selected = cpu_value(p, list);
        of->choices = n->u.attention.selections;
        of->choice = p->graph->value[list].cols / of->choices;
    }
    if (n->u.attention.sinks) a.token_sinks = cpu_value(p, n->in[n->u.attention.sinks]);
    if (n->u.attention.by_distance) {
        value_id bias = n->in[n->u.attention.by_distance];
        a.by_distance = cpu_value(p, bias);
        a.distances = p->graph->value[bias].cols / n->u.attention.heads;
    }
    if (n->u.attention.by_key) {
        value_id bias = n->in[n->u.attention.by_key];
        a.by_key = cpu_value(p, bias);
        a.distances = p->graph->value[bias].cols / n->u.attention.heads;
    }
    if (n->u.attention.offsets) a.distances = 2 * n->u.attention.reach + 1;
    if (!n->u.attention.shares)
        cpu_cache_store(p, &a.keys.cache, cpu_value(p, n->in[1]), cpu_value(p, n->in[2]));
    if (n->u.attention.beside) {
        const float *beside = cpu_value(p, n->in[n->u.attention.beside]);
        cpu_cache_store(p, &a.beside.cache, beside, beside);
    }
    make_tiles(&a);
    uint32_t splits = 0;
    for (uint32_t i = 0; i < a.units; i++) {
        struct unit u = unit_of(&a, i);
        if (u.end - u.begin > splits) splits = u.end - u.begin;
    }
    if (splits > 1 && a.units < UNITS_A_THREAD * p->device->threads) run_waves(&a, splits);
    else pool_run(p->device->pool, a.units, run_unit, &a);
}
