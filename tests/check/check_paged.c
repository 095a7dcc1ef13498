/* SPDX-License-Identifier: Apache-2.0
 *
 * check_paged.c: attention of the cpu and ref devices against softmax(q k^T) v written out over
 * plain rows: pages, which keys a query sees, sinks, slopes, a cache that nodes share, which query
 * heads share a KV head, positions before and in the step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/blocks/alibi.h"
#include "tiny.h"

enum { LENGTH = 700, HEADS = 6, KV_HEADS = 2, K_DIM = 32, V_DIM = 64, IDS = TINY_POSITIONS + 64,
       INDEX_HEADS = 3, BLOCK = 16, LOCAL = 2 };

#ifdef CHECK_KERNELS_ONLY
enum { EMULATED = true };
#else
enum { EMULATED = false };
#endif

struct paged_case {
    const char *isa;
    enum kv_type kv;
    uint32_t window, chunk;
    float softcap;
    bool bidirectional, sinks, alibi, shares;
    uint32_t distances; /* that have a bias; then sinks are the token's */
    uint32_t selects; /* keys of a query, by whole numbers of INDEX_HEADS heads */
    uint32_t blocks;  /* of BLOCK keys, by each KV head, the last two always */
    uint32_t every;   /* so many positions have a key beside those of the window; selects is of
                         these then; keys are as wide as values */
};

static uint32_t key_dim(const struct paged_case *c) { return c->every ? V_DIM : K_DIM; }

/* Twice the most that a format cost over five seeds: what is checked is pages, windows and heads.
 * Kernels are held much closer to the definition in check_attention.c and check_ops.c. Of q8_0's
 * 2.6e-4 the format is 1.5e-4 (the reference device), the rest is the query in int8. */
static const double nmse[KV_TYPES] = {
    [KV_bf16] = 3e-5, [KV_f16] = 4e-7, [KV_q4_0] = 8e-2, [KV_q8_0] = 5e-4};

static const float *row_of(const struct weight *w, uint32_t i) {
    return (const float *)w->data + (size_t)i * w->cols;
}

/* A value of whole numbers, so that index scores are exact and often equal. */
static value_id whole_input(struct tiny *t, uint32_t cols, const struct weight **w) {
    struct weight *m = tiny_weight(t, quant_list[QUANT_f32], IDS, cols);
    float *x = check_input(t->row, (size_t)IDS * cols, -3, 3);
    for (size_t i = 0; i < (size_t)IDS * cols; i++) x[i] = rintf(x[i]);
    m->data = x;
    *w = m;
    return graph_embed(&t->graph, m, 1);
}

/* By definition: chosen is what fewer than `used` others are above. */
static void choose(const struct weight *const x[3], const struct paged_case *c, uint32_t pos,
                   bool *chosen) {
    double score[LENGTH] = {0};
    uint32_t every = c->every ? c->every : 1, seen = (pos + 1) / every;
    for (uint32_t j = 0; j < seen; j++)
        for (int h = 0; h < INDEX_HEADS; h++) {
            double dot = 0;
            for (int d = 0; d < K_DIM; d++)
                dot += row_of(x[0], pos)[h * K_DIM + d] * row_of(x[2], (j + 1) * every - 1)[d];
            score[j] += row_of(x[1], pos)[h] * fmax(dot, 0);
        }
    for (uint32_t j = 0; j < LENGTH; j++) {
        uint32_t above = 0;
        for (uint32_t i = 0; i < seen; i++)
            above += score[i] > score[j] || (score[i] == score[j] && i < j);
        chosen[j] = j < seen && above < c->selects;
    }
}

/* The same for the blocks of one KV head. */
static void choose_blocks(const struct weight *const x[3], uint32_t pos, uint32_t head,
                          uint32_t used, bool *chosen) {
    double top[LENGTH / BLOCK + 1];
    uint32_t last = pos / BLOCK;
    for (uint32_t i = 0; i <= last; i++) top[i] = i + LOCAL > last ? INFINITY : -INFINITY;
    for (uint32_t j = 0; j <= pos; j++) {
        double dot = 0;
        for (int d = 0; d < K_DIM; d++)
            dot += row_of(x[0], pos)[head * K_DIM + d] * row_of(x[2], j)[d];
        top[j / BLOCK] = fmax(top[j / BLOCK], dot);
    }
    for (uint32_t j = 0; j < LENGTH; j++) {
        uint32_t above = 0, own = j / BLOCK;
        for (uint32_t i = 0; j <= pos && i <= last; i++)
            above += top[i] > top[own] || (top[i] == top[own] && i < own);
        chosen[j] = j <= pos && above < used;
    }
}

static bool sees(const struct paged_case *c, int32_t query, int32_t key) {
    if (c->bidirectional) return !c->window || abs(query - key) <= (int32_t)c->window / 2;
    if (c->chunk && query / (int32_t)c->chunk != key / (int32_t)c->chunk) return false;
    return key <= query && (!c->window || query - key < (int32_t)c->window);
}

/* Adds to y, and returns, what a key weighs before the division. */
static double add(const struct paged_case *c, double bias, const float *q, const float *k,
                  const float *v, double *y) {
    double s = 0;
    for (uint32_t d = 0; d < key_dim(c); d++) s += (double)q[d] * k[d];
    s *= 2;
    if (c->softcap > 0) s = c->softcap * tanh(s / c->softcap);
    s = exp(s + bias);
    for (int d = 0; d < V_DIM; d++) y[d] += s * v[d];
    return s;
}

/* One head of the query at pos. */
static void attend(const struct paged_case *c, const struct attention_args *args,
                   const struct weight *const w[6], const bool *chosen, uint32_t pos, uint32_t head,
                   float *out) {
    uint32_t kv = head / (HEADS / KV_HEADS), k_dim = key_dim(c);
    const float *q = row_of(w[0], pos) + head * k_dim;
    double sum = 0, y[V_DIM] = {0};
    if (args->sinks) sum += exp(row_of(args->sinks, 0)[head]);
    if (w[4]) sum += exp(row_of(w[4], pos)[head]);
    for (uint32_t j = 0; j < LENGTH; j++) {
        if ((!c->every && !chosen[j]) || !sees(c, (int32_t)pos, (int32_t)j)) continue;
        double bias = args->alibi ? args->alibi[head] * ((double)j - pos) : 0;
        if (pos - j < c->distances) bias += row_of(w[3], pos)[head * c->distances + pos - j];
        sum += add(c, bias, q, row_of(w[1], j) + kv * k_dim, row_of(w[2], j) + kv * V_DIM, y);
    }
    for (uint32_t j = 0; c->every && j < (pos + 1) / c->every; j++) {
        const float *both = row_of(w[5], (j + 1) * c->every - 1) + kv * V_DIM;
        if (chosen[j]) sum += add(c, 0, q, both, both, y);
    }
    for (int d = 0; d < V_DIM; d++) out[d] = (float)(y[d] / sum);
}

static void run(struct check_row *row, const void *arg) {
    const struct paged_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    const uint32_t k_dim = key_dim(c);
    const uint32_t cols[3] = {HEADS * k_dim, KV_HEADS * k_dim, KV_HEADS * V_DIM};
    const struct weight *w[6] = {NULL};
    value_id in[3];
    for (int i = 0; i < 3; i++) {
        struct weight *m = tiny_weight(&t, quant_list[QUANT_f32], IDS, cols[i]);
        in[i] = graph_embed(&t.graph, m, 1);
        w[i] = m;
    }
    struct attention_args args = {.heads = HEADS, .kv_heads = KV_HEADS, .k_dim = k_dim,
                                  .v_dim = V_DIM, .scale = 2, .chunk = c->chunk,
                                  .bidirectional = c->bidirectional};
    if (c->shares) { /* the layer that stores sees more, and of other queries */
        if (c->window) args.window = c->window + 40;
        value_id other = tiny_input(&t, IDS, cols[0]);
        other = graph_attention(&t.graph, other, in[1], in[2], &args);
        args.shares = true;
        args.shared_cache = graph_attention_cache(&t.graph, other);
        in[1] = in[2] = NO_VALUE;
    }
    const struct weight *index[3] = {NULL};
    if (c->selects) {
        value_id x[3] = {whole_input(&t, INDEX_HEADS * K_DIM, &index[0]),
                         whole_input(&t, INDEX_HEADS, &index[1]),
                         whole_input(&t, K_DIM, &index[2])};
        args.selection = graph_index_select(&t.graph, x[0], x[1], x[2], c->selects, c->every);
        args.selects = true;
    }
    if (c->blocks) {
        value_id q = whole_input(&t, KV_HEADS * K_DIM, &index[0]);
        value_id k = whole_input(&t, K_DIM, &index[2]);
        args.selection = graph_block_select(&t.graph, q, k, BLOCK, c->blocks, LOCAL);
        args.selects = true;
    }
    if (c->every) {
        struct weight *m = tiny_weight(&t, quant_list[QUANT_f32], IDS, KV_HEADS * V_DIM);
        args.has_beside = true;
        args.every = c->every;
        args.beside = graph_embed(&t.graph, m, 1);
        w[5] = m;
    }
    args.window = c->window;
    args.softcap = c->softcap;
    if (c->alibi) args.alibi = alibi_slopes(&t.arena, HEADS, 8);
    if (c->distances) {
        struct weight *m = tiny_weight(&t, quant_list[QUANT_f32], IDS, HEADS * c->distances);
        struct weight *sinks = tiny_weight(&t, quant_list[QUANT_f32], IDS, HEADS);
        m->data = check_input(row, (size_t)IDS * m->cols, -5, 5);
        sinks->data = check_input(row, (size_t)IDS * HEADS, 6, 14);
        args.has_by_distance = args.has_token_sinks = true;
        args.by_distance = graph_embed(&t.graph, m, 1);
        args.token_sinks = graph_embed(&t.graph, sinks, 1);
        w[3] = m, w[4] = sinks;
    }
    if (c->sinks) { /* as large as the sums that they join */
        args.sinks = tiny_weight(&t, quant_list[QUANT_f32], 1, HEADS);
        args.sinks->data = check_input(row, HEADS, 6, 14);
    }
    t.graph.logits = graph_attention(&t.graph, in[0], in[1], in[2], &args);

    size_t n = (size_t)LENGTH * HEADS * V_DIM;
    float *got = check_output(row, n), *want = check_output(row, n);
    struct tiny_run device;
    tiny_open(&device, &t, c->isa, 2, (struct kv_types){c->kv, c->kv}, LENGTH);
    const uint32_t first = c->bidirectional ? LENGTH : 90, rest = LENGTH - first;
    tiny_step(&device, (const uint32_t[TINY_SEQS]){first}, got);
    if (rest) tiny_step(&device, (const uint32_t[TINY_SEQS]){rest}, got + first * HEADS * V_DIM);
    tiny_close(&device);
    bool chosen[LENGTH];
    memset(chosen, true, sizeof chosen);
    for (uint32_t pos = 0; pos < LENGTH; pos++) {
        if (c->selects) choose(index, c, pos, chosen);
        for (uint32_t h = 0; h < HEADS; h++) {
            if (c->blocks)
                choose_blocks(index, pos, h / (HEADS / KV_HEADS), c->blocks, chosen);
            attend(c, &args, w, chosen, pos, h, want + ((size_t)pos * HEADS + h) * V_DIM);
        }
    }
    if (c->kv == KV_f32) check_close(row, got, want, n, (struct check_bound){2e-5, 2e-5});
    else check_nmse(row, got, want, n, nmse[c->kv]);
    arena_free(&t.arena);
}

void check_paged(struct check *check) {
    static const struct paged_case cases[] = {
        {.window = 0},
        {.softcap = 3},
        {.window = 1},
        {.window = 64},
        {.window = 65},
        {.window = 600, .softcap = 2},
        {.sinks = true},
        {.window = 100, .sinks = true, .alibi = true},
        {.alibi = true, .shares = true},
        {.window = 70, .shares = true},
        {.chunk = 64},
        {.chunk = 100, .shares = true},
        {.bidirectional = true, .alibi = true},
        {.bidirectional = true, .window = 129, .sinks = true},
        {.bidirectional = true, .window = 800, .shares = true},
        {.distances = 33},
        {.distances = 70, .window = 100, .alibi = true},
        {.distances = 300, .selects = 200},
        {.blocks = 3},
        {.blocks = 20, .sinks = true},
        {.selects = 5},
        {.selects = 300, .window = 400, .shares = true, .sinks = true},
        {.window = 20, .every = 3},
        {.window = 65, .every = 1, .softcap = 3},
        {.window = 5, .every = 128, .sinks = true},
        {.window = 100, .every = 4, .selects = 7, .sinks = true},
    };
    for (int kv = 0; kv < KV_TYPES; kv++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct paged_case c = cases[i];
            c.isa = cpu_isa_name(cpu_best());
            c.kv = (enum kv_type)kv;
            if ((c.selects || c.blocks) && kv_quant(c.kv)->block > 1)
                continue; /* the scores would be rounded */
            char name[96];
            snprintf(name, sizeof name, "%s.%s%u%s%s%s%s%s", kv_name(c.kv),
                     c.chunk ? "chunk" : "window", c.chunk ? c.chunk : c.window,
                     c.bidirectional ? "_bidirectional" : "", c.sinks ? "_sinks" : "",
                     c.alibi ? "_alibi" : "", c.shares ? "_shares" : "",
                     c.distances ? "_distances"
                     : c.selects ? "_selects"
                     : c.blocks  ? "_blocks"
                                 : "");
            /* Each format and each case once; emulated each format: the cases are the device's
             * own code, the same on every processor. */
            bool once = i == 0 || (kv == KV_f32 && !EMULATED);
            if (check_isa(check, cpu_best()) && (once || !check_quick(check)))
                check_run(check, run, &c, "paged.%s.%s", c.isa, name);
            c.isa = check_device(check);
            if (c.isa) check_run(check, run, &c, "paged.%s.%s", c.isa, name);
            c.isa = NULL;
            if (once && !check_quick(check)) check_run(check, run, &c, "paged.ref.%s", name);
        }
}
