/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c: the recurrent ops: each sequence's tokens in order on its state, which lies in the
 * layer's slot of the sequence's page. Chunks are sequences x heads, or x runs of columns; they
 * share nothing. */
#include <assert.h>
#include <string.h>

#include "devices/cpu/cpu.h"

enum {
    GRAIN = 16384, /* about what a chunk of columns should cost, in fused multiply-adds */
    COLUMNS = 64,  /* chunks are multiples of it: threads do not share a line */
};

struct run {
    const struct device_plan *plan;
    const struct node *node;
    const struct kernels *kernels;
    const struct cpu_node *info;
    uint32_t cache, parts;    /* chunks of a sequence */
    uint32_t cols, per_part;  /* columns of the node, of a part */
};

/* One chunk. */
struct piece {
    const struct step_seq *seq;
    float *state;
    uint32_t part, col0, col1;
};

static float *state_of(const struct run *r, const struct step_seq *seq) {
    const struct cache *cache = &r->plan->graph->cache[r->cache];
    const struct cache_group *group = &r->plan->graph->group[cache->group];
    uint32_t page = seq->page[cache->group][0];
    assert(page != NO_PAGE);
    char *p = (char *)r->plan->kv[cache->group]->p + page * r->plan->page_bytes[cache->group];
    return (float *)(void *)p + (size_t)cache->slot * group->state_floats;
}

static struct piece piece_of(const struct run *r, uint32_t chunk) {
    struct piece p = {.seq = &r->plan->step->seq[chunk / r->parts], .part = chunk % r->parts};
    p.state = state_of(r, p.seq);
    p.col0 = p.part * r->per_part;
    p.col1 = r->cols - p.col0 > r->per_part ? p.col0 + r->per_part : r->cols;
    return p;
}

/* A sequence begins with zeros, whatever its page held: the piece's columns of `rows` rows. */
static void begin(const struct run *r, const struct piece *p, uint32_t rows) {
    for (uint32_t i = 0; i < rows && p->seq->past == 0; i++)
        memset(p->state + (size_t)i * r->cols + p->col0, 0,
               (p->col1 - p->col0) * sizeof *p->state);
}

static float *value(const struct run *r, value_id v, const struct piece *p) {
    return cpu_value(r->plan, v) + (size_t)p->seq->first * r->plan->graph->value[v].cols;
}
static float *in(const struct run *r, uint32_t i, const struct piece *p) {
    return r->node->in[i] == NO_VALUE ? NULL : value(r, r->node->in[i], p);
}
static float *out(const struct run *r, const struct piece *p) {
    return value(r, r->node->out[0], p);
}

/* Cuts columns so that a chunk is worth waking a thread for; `cost`: of one column of a token. */
static struct run make(struct device_plan *p, const struct node *n, uint32_t cache, uint32_t cost) {
    struct run r = {.plan = p, .node = n, .kernels = p->device->kernels, .info = cpu_info(p, n),
                    .cache = cache, .cols = p->graph->value[n->out[0]].cols};
    size_t one = (size_t)cost * (p->step->tokens / p->step->seqs);
    r.per_part = (uint32_t)(GRAIN / one / COLUMNS + 1) * COLUMNS;
    r.parts = (r.cols + r.per_part - 1) / r.per_part;
    return r;
}

static void start(struct run *r, void (*fn)(void *, uint32_t, uint32_t)) {
    pool_run(r->plan->device->pool, r->plan->step->seqs * r->parts, fn, r);
}

/* ---- the ops ---- */

static void compress(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    const struct node *n = r->node;
    struct piece p = piece_of(r, chunk);
    bool overlaps = n->u.compress.overlaps;
    begin(r, &p, overlaps ? 6 : 3);
    struct compress_job job = {.kv = in(r, 0, &p), .gate = in(r, 1, &p), .bias = r->info->weight,
                               .y = out(r, &p), .state = p.state, .cols = r->cols,
                               .every = n->u.compress.every, .tokens = p.seq->count,
                               .at = p.seq->past % n->u.compress.every, .overlaps = overlaps};
    r->kernels->compress(&job, p.col0, p.col1);
}
void cpu_compress(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.compress.cache, n->u.compress.overlaps ? 60 : 30);
    start(&r, compress);
}

static void conv1d(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    struct piece p = piece_of(r, chunk);
    uint32_t kernel = r->node->u.conv1d.kernel, step = r->node->u.conv1d.step;
    begin(r, &p, (kernel - 1) * step);
    struct conv1d_job job = {.x = in(r, 0, &p), .w = r->info->weight, .bias = r->info->bias[0],
                             .y = out(r, &p), .state = p.state, .cols = r->cols,
                             .kernel = kernel, .step = step, .tokens = p.seq->count};
    r->kernels->conv1d(&job, p.col0, p.col1);
}
void cpu_conv1d(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.conv1d.cache, n->u.conv1d.kernel);
    start(&r, conv1d);
}

static void embed_ngrams_seq(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    const struct ngram_args *a = &r->node->u.embed_ngrams.args;
    const struct weight *w = r->node->weight[0];
    struct piece p = piece_of(r, chunk);
    if (p.seq->past == 0) memset(p.state, 0, (a->order - 1) * sizeof *p.state);
    embed_ngrams(&(struct ngram_job){.quant = w->quant,
                                     .part = w->expert ? w->expert : &w->data,
                                     .part_rows = w->rows,
                                     .cols = w->cols,
                                     .row_bytes = w->row_bytes,
                                     .order = a->order,
                                     .heads = a->heads,
                                     .tokens = p.seq->count,
                                     .end = a->end,
                                     .multiplier = a->multiplier,
                                     .size = a->size,
                                     .first = a->first,
                                     .id = r->plan->step->id + p.seq->first,
                                     .y = out(r, &p),
                                     .state = p.state});
}
void cpu_embed_ngrams(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.embed_ngrams.cache, 1);
    r.per_part = r.cols;
    r.parts = 1;
    start(&r, embed_ngrams_seq);
}

static void token_shift(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    struct piece p = piece_of(r, chunk);
    begin(r, &p, 1);
    r->kernels->token_shift(in(r, 0, &p), p.state, out(r, &p), r->cols, p.seq->count);
}
void cpu_token_shift(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.token_shift.cache, 1);
    r.per_part = r.cols;
    r.parts = 1;
    start(&r, token_shift);
}

static void delta(void *arg, uint32_t head, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    const struct node *n = r->node;
    struct piece p = piece_of(r, head);
    uint32_t k_dim = n->u.delta.k_dim, v_dim = n->u.delta.v_dim, heads = n->u.delta.heads;
    uint32_t k_heads = n->u.delta.k_heads, h = p.part;
    size_t k_at = (size_t)(n->u.delta.k_tiled ? h % k_heads : h / (heads / k_heads)) * k_dim;
    uint32_t decays = n->u.delta.decay_each ? k_dim : 1;
    const float *decay = in(r, 3, &p), *beta = in(r, 4, &p), *skip = r->info->bias[0];
    float *state = p.state + (size_t)h * k_dim * v_dim;
    if (p.seq->past == 0) memset(state, 0, (size_t)k_dim * v_dim * sizeof *state);
    struct delta_job job = {.q = in(r, 0, &p) + k_at,
                            .k = in(r, 1, &p) + k_at,
                            .v = in(r, 2, &p) + (size_t)h * v_dim,
                            .decay = decay ? decay + (size_t)h * decays
                                           : n->u.delta.fixed_decay + h,
                            .beta = beta ? beta + h : NULL,
                            .skip = skip ? skip + h : NULL,
                            .y = out(r, &p) + (size_t)h * v_dim,
                            .state = state,
                            .k_stride = (size_t)k_heads * k_dim,
                            .v_stride = (size_t)heads * v_dim,
                            .decay_stride = decay ? (size_t)heads * decays : 0,
                            .beta_stride = heads,
                            .k_dim = k_dim,
                            .v_dim = v_dim,
                            .tokens = p.seq->count,
                            .scale = n->u.delta.scale,
                            .delta = n->u.delta.delta,
                            .decay_each = n->u.delta.decay_each};
    r->kernels->delta(&job);
}
void cpu_delta(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.delta.cache, 1);
    r.per_part = n->u.delta.v_dim;
    r.parts = n->u.delta.heads;
    start(&r, delta);
}

static void mlstm(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    const struct node *n = r->node;
    struct piece p = piece_of(r, chunk);
    uint32_t k_dim = n->u.mlstm.k_dim, v_dim = n->u.mlstm.v_dim, heads = n->u.mlstm.heads;
    size_t each = (size_t)k_dim * (v_dim + 1) + 1;
    float *state = p.state + p.part * each;
    if (p.seq->past == 0) memset(state, 0, each * sizeof *state);
    struct mlstm_job job = {.q = in(r, 0, &p) + (size_t)p.part * k_dim,
                            .k = in(r, 1, &p) + (size_t)p.part * k_dim,
                            .v = in(r, 2, &p) + (size_t)p.part * v_dim,
                            .gate = in(r, 3, &p) + p.part,
                            .log_decay = in(r, 4, &p) + p.part,
                            .y = out(r, &p) + (size_t)p.part * v_dim,
                            .state = state,
                            .k_stride = (size_t)heads * k_dim,
                            .v_stride = (size_t)heads * v_dim,
                            .gate_stride = heads,
                            .k_dim = k_dim,
                            .v_dim = v_dim,
                            .tokens = p.seq->count,
                            .scale = n->u.mlstm.scale,
                            .eps = n->u.mlstm.eps};
    r->kernels->mlstm(&job);
}
void cpu_mlstm(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.mlstm.cache, 1);
    r.per_part = n->u.mlstm.v_dim;
    r.parts = n->u.mlstm.heads;
    start(&r, mlstm);
}

static void rglru(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    struct piece p = piece_of(r, chunk);
    begin(r, &p, 1);
    struct rglru_job job = {.x = in(r, 0, &p), .log_decay = in(r, 1, &p), .y = out(r, &p),
                            .state = p.state, .cols = r->cols, .tokens = p.seq->count,
                            .starts = p.seq->past == 0};
    r->kernels->rglru(&job, p.col0, p.col1);
}
void cpu_rglru(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.rglru.cache, 12);
    start(&r, rglru);
}

/* Columns of a head share B and C; a part may hold the end of one head and the start of others. */
static void scan(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    const struct node *n = r->node;
    struct piece p = piece_of(r, chunk);
    uint32_t states = n->u.scan.n, each = r->cols / n->u.scan.heads;
    begin(r, &p, states);
    struct scan_job job = {.x = in(r, 0, &p), .dt = in(r, 1, &p), .a = r->info->weight,
                           .d = r->info->bias[0], .y = out(r, &p), .state = p.state,
                           .bc_stride = (size_t)n->u.scan.heads * states, .cols = r->cols,
                           .n = states, .tokens = p.seq->count};
    for (uint32_t col = p.col0, end; col < p.col1; col = end) {
        uint32_t head = col / each;
        end = (head + 1) * each < p.col1 ? (head + 1) * each : p.col1;
        job.b = in(r, 2, &p) + (size_t)head * states;
        job.c = in(r, 3, &p) + (size_t)head * states;
        r->kernels->scan(&job, col, end);
    }
}
void cpu_scan(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.scan.cache, n->u.scan.n * 10);
    start(&r, scan);
}

static void wkv4(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct run *r = arg;
    struct piece p = piece_of(r, chunk);
    begin(r, &p, 3);
    struct wkv4_job job = {.k = in(r, 0, &p), .v = in(r, 1, &p), .decay = r->info->weight,
                           .first = r->info->bias[0], .y = out(r, &p), .state = p.state,
                           .cols = r->cols, .tokens = p.seq->count};
    r->kernels->wkv4(&job, p.col0, p.col1);
}
void cpu_wkv4(struct device_plan *p, const struct node *n) {
    struct run r = make(p, n, n->u.wkv4.cache, 50);
    start(&r, wkv4);
}
