/* SPDX-License-Identifier: Apache-2.0
 *
 * test_state.c: sequences of recurrent models: states, their snapshots and their memory. The model
 * is a small graph of attention and recurrent layers, made by hand, on the cpu device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/internal.h"

enum { VOCAB = 40, COLS = 32, CONTEXT = 256, STEP = 64, PARALLEL = 2, TOKENS = 96 };

static uint64_t stream; /* of random weights */

static struct weight *weight(struct arena *arena, uint32_t rows, uint32_t cols) {
    struct weight *w = arena_alloc(arena, sizeof *w);
    float *data = arena_array(arena, (size_t)rows * cols, sizeof *data);
    assert_true(w && data);
    stream++;
    for (uint32_t i = 0; i < rows * cols; i++)
        data[i] = (float)(rng_u64(stream, i) % 2001) / 1000 - 1;
    *w = (struct weight){.name = "w", .quant = quant_list[QUANT_f32], .rows = rows, .cols = cols,
                         .row_bytes = cols * sizeof *data, .data = data};
    return w;
}

static void build(struct model *m) {
    enum { HEADS = 2, DIM = COLS / HEADS };
    struct graph *g = &m->graph;
    static const float decay[HEADS] = {0.9f, 0.99f};
    graph_init(g, &m->arena);
    stream = 0;
    value_id x = graph_embed(g, weight(&m->arena, VOCAB, COLS), 1);
    for (int layer = 0; layer < 2; layer++) {
        g->layer = layer;
        struct delta_args delta = {.q = x, .k = x, .v = x, .decay = NO_VALUE, .beta = NO_VALUE,
                                   .heads = HEADS, .k_heads = HEADS, .k_dim = DIM, .v_dim = DIM,
                                   .fixed_decay = decay, .scale = 1};
        struct attention_args attention = {.heads = HEADS, .kv_heads = HEADS, .k_dim = DIM,
                                           .v_dim = DIM, .scale = 0.25f};
        value_id y = graph_conv1d(g, x, weight(&m->arena, COLS, 4), NULL, 4);
        y = graph_add(g, y, graph_delta(g, &delta));
        y = graph_add(g, y, graph_attention(g, x, x, y, &attention));
        attention.window = 20; /* beside it a key for each block of two positions */
        attention.has_beside = true;
        attention.every = 2;
        attention.beside = graph_compress(g, x, y, weight(&m->arena, 2, COLS), 2, false);
        y = graph_add(g, y, graph_attention(g, x, x, x, &attention));
        x = graph_norm(g, graph_add(g, x, y), NULL, NULL, NORM_RMS, 1e-6f, COLS);
    }
    g->layer = -1;
    g->logits = graph_linear1(g, graph_gather_rows(g, x), weight(&m->arena, VOCAB, COLS), NULL);
    m->hp.vocab = VOCAB;
}

static void make_group(struct engine *e, uint32_t i) {
    const struct cache_group *g = &e->model->graph.group[i];
    bool state = g->kind == CACHE_STATE;
    uint32_t pages = state ? PARALLEL * (1 + e->snapshots) : PARALLEL * CONTEXT / PAGE_TOKENS;
    assert_int_equal(engine_parts_open_kv(e, i, pages, NULL), OB_OK);
    assert_true(pages_init(&e->group[i].pages, pages));
}

static void open_part(struct engine *e, uint32_t from, uint32_t to) {
    struct part *p = &e->part[e->parts++];
    *p = (struct part){.type = device_find("cpu"), .from = from, .to = to, .graph = &p->own};
    assert_int_equal(p->type->open(&(struct device_options){.threads = 2}, &p->device, NULL),
                     OB_OK);
    assert_true(graph_part(&e->model->graph, from, to, &e->arena, &p->own));
}

/* cut: layers before that one run on a device of their own; 0: there is one device. */
static struct engine *make_cut(uint32_t snapshots, int32_t cut) {
    struct engine *e = calloc(1, sizeof *e);
    e->model = calloc(1, sizeof *e->model);
    build(e->model);
    uint32_t nodes = e->model->graph.nodes;
    uint32_t at = cut ? graph_layer_start(&e->model->graph, cut) : 0;
    if (at) open_part(e, 0, at);
    open_part(e, at, nodes);
    e->kv_type = (struct kv_types){KV_f16, KV_f16};
    e->context = CONTEXT;
    e->parallel = PARALLEL;
    e->step_tokens = e->step_logits = STEP;
    e->snapshots = snapshots;
    e->groups = e->model->graph.groups;
    e->group = arena_array(&e->arena, e->groups, sizeof *e->group);
    for (uint32_t i = 0; i < e->parts; i++)
        assert_int_equal(memory_pages_open(e, &e->part[i], NULL), OB_OK);
    for (uint32_t i = 0; i < e->groups; i++) make_group(e, i);
    e->id = arena_array(&e->arena, STEP, sizeof *e->id);
    e->pos = arena_array(&e->arena, STEP, sizeof *e->pos);
    e->row = arena_array(&e->arena, STEP, sizeof *e->row);
    e->step_seq = arena_array(&e->arena, PARALLEL, sizeof *e->step_seq);
    assert_int_equal(engine_parts_prepare(e, NULL), OB_OK);
    return e;
}

static struct engine *make(uint32_t snapshots) { return make_cut(snapshots, 0); }

static void close_all(struct engine *e) {
    for (uint32_t g = 0; g < e->groups; g++)
        assert_int_equal(e->group[g].pages.free_count, e->group[g].pages.count);
    engine_close(&e);
}

static int32_t ids[TOKENS], others[TOKENS];

static void fill_ids(void) {
    for (uint32_t i = 0; i < TOKENS; i++) {
        ids[i] = (int32_t)(rng_u64(1, i) % VOCAB);
        others[i] = (int32_t)(rng_u64(2, i) % VOCAB);
    }
}

/* Appends id[from .. to) in steps of `chunk`; the logits go to rows from `from` on, if any. */
static void feed(struct engine *e, struct seq *seq, const int32_t *id, uint32_t to, uint32_t chunk,
                 float *rows) {
    for (uint32_t at = seq_length(seq), n; at < to; at += n) {
        n = to - at < chunk ? to - at : chunk;
        struct engine_item item = {.seq = seq, .id = id + at, .n = n, .logits = n};
        const float *logits;
        assert_int_equal(engine_step(e, &item, 1, &logits, NULL), OB_OK);
        if (rows) memcpy(rows + (size_t)at * VOCAB, logits, (size_t)n * VOCAB * sizeof *rows);
    }
}

static float want[TOKENS * VOCAB], got[TOKENS * VOCAB];

static void same_rows(uint32_t from, uint32_t to) {
    assert_memory_equal(got + (size_t)from * VOCAB, want + (size_t)from * VOCAB,
                        (size_t)(to - from) * VOCAB * sizeof *got);
}

/* What was cut off never happened, at whatever length it is cut. */
static void roll_back(struct engine *e) {
    struct seq *a = seq_new(e), *b = seq_new(e);
    feed(e, a, ids, TOKENS, 32, want);
    for (uint32_t cut = 0; cut < 40; cut += 7) {
        assert_int_equal(seq_truncate(b, 0), 0);
        feed(e, b, ids, 10, 10, NULL);
        feed(e, b, ids, 14, 1, NULL);
        feed(e, b, ids, 20, 3, NULL);
        uint32_t kept = cut < 10 ? 0 : cut < 17 ? 10 : cut < 20 ? 17 : 20;
        feed(e, b, others, 60, 1, NULL);
        assert_int_equal(seq_kept(b, cut < 20 ? cut : 20), kept);
        assert_int_equal(seq_truncate(b, cut < 20 ? cut : 20), kept);
        assert_int_equal(seq_length(b), kept);
        feed(e, b, ids, TOKENS, 13, got);
        same_rows(kept, TOKENS);
    }
    seq_free(&a);
    seq_free(&b);
    close_all(e);
}

static void rolled_back(void **state) {
    (void)state;
    roll_back(make(STATE_SNAPSHOTS));
}

/* Two sequences that begin alike are each what they are alone, whoever writes first, and when one
 * is gone. */
static void forked(void **state) {
    (void)state;
    static float other[TOKENS * VOCAB];
    struct engine *e = make(STATE_SNAPSHOTS);
    struct seq *a = seq_new(e), *b;
    feed(e, a, ids, TOKENS, 32, want);
    for (uint32_t at = 8; at <= 80; at += 8)
        for (int order = 0; order < 3; order++) {
            assert_int_equal(seq_truncate(a, 0), 0);
            feed(e, a, ids, at, 8, NULL);
            if (order == 2) feed(e, a, others, at + 9, 1, NULL);
            /* the window of what goes on may have passed `at` */
            uint32_t kept = seq_kept(a, at);
            assert_true(kept == at || (order == 2 && kept == 0));
            assert_non_null(b = seq_fork(a, at));
            assert_int_equal(seq_length(b), kept);
            if (order == 0) {
                feed(e, a, others, TOKENS, 5, other);
                feed(e, b, ids, TOKENS, 13, got);
            } else if (order == 1) {
                feed(e, b, ids, TOKENS, 13, got);
                feed(e, a, others, TOKENS, 5, other);
            } else {
                seq_free(&a);
                feed(e, b, ids, TOKENS, 1, got);
                a = seq_new(e);
            }
            same_rows(kept, TOKENS);
            kept = seq_truncate(b, at); /* the one that is left is whole */
            feed(e, b, ids, TOKENS, 32, got);
            same_rows(kept, TOKENS);
            seq_free(&b);
        }
    seq_free(&a);
    close_all(e);
}

/* What a fork takes: a state, and the page it appends to; not what both have whole. */
static void forks_share(void **state) {
    (void)state;
    struct engine *e = make(0);
    struct seq *a = seq_new(e), *b;
    feed(e, a, ids, 70, 32, NULL);
    uint32_t before[8];
    for (uint32_t g = 0; g < e->groups; g++) before[g] = e->group[g].pages.free_count;
    assert_non_null(b = seq_fork(a, 70));
    for (uint32_t g = 0; g < e->groups; g++) {
        bool is_state = e->model->graph.group[g].kind == CACHE_STATE;
        assert_int_equal(e->group[g].pages.free_count, before[g] - is_state);
        assert_int_equal(seq_needs(b, g, 1), !is_state);
    }
    feed(e, b, ids, 71, 1, NULL);
    for (uint32_t g = 0; g < e->groups; g++) {
        assert_int_equal(e->group[g].pages.free_count, before[g] - 1);
        assert_int_equal(seq_needs(a, g, 1), 0); /* it is the only one left */
    }
    assert_null(seq_fork(b, 71)); /* no third state */
    assert_int_equal(seq_length(b), 71);
    seq_free(&a);
    seq_free(&b);
    close_all(e);
}

/* Layers on a device each compute what they do on one, whatever the steps. */
static void on_two_devices(void **state) {
    (void)state;
    static float whole[TOKENS * VOCAB];
    struct engine *e = make(0);
    struct seq *seq = seq_new(e);
    feed(e, seq, ids, TOKENS, 32, whole);
    seq_free(&seq);
    close_all(e);
    for (int32_t layer = 1; layer <= 2; layer++) { /* 2: the output alone */
        roll_back(make_cut(STATE_SNAPSHOTS, layer));
        assert_memory_equal(want, whole, sizeof whole);
    }
}

/* A page that another sequence has used is taken as zeros. */
static void begins_with_zeros(void **state) {
    (void)state;
    struct engine *e = make(0);
    struct seq *seq = seq_new(e);
    feed(e, seq, ids, TOKENS, 32, want);
    seq_free(&seq);
    for (int i = 0; i < 2; i++) {
        struct seq *two[2] = {seq_new(e), seq_new(e)};
        feed(e, two[0], others, TOKENS, 1, NULL);
        feed(e, two[1], ids, TOKENS, 1, got);
        same_rows(0, TOKENS);
        seq_free(&two[0]);
        seq_free(&two[1]);
    }
    close_all(e);
}

static void snapshots_are_few_and_spread(void **state) {
    (void)state;
    struct engine *e = make(STATE_SNAPSHOTS);
    struct seq *seq = seq_new(e);
    for (uint32_t n = 4; n <= TOKENS; n += 4) {
        feed(e, seq, ids, n, 4, NULL);
        assert_int_equal(seq->snapshots, n / 4 < STATE_SNAPSHOTS ? n / 4 : STATE_SNAPSHOTS);
        assert_int_equal(seq_kept(seq, n), n);
    }
    assert_int_equal(seq->snapshot[3], TOKENS);
    assert_int_equal(seq->snapshot[2], TOKENS - 4);
    assert_true(seq->snapshot[0] >= TOKENS / 4 && seq->snapshot[0] <= 3 * TOKENS / 4);
    for (int i = 1; i < STATE_SNAPSHOTS; i++)
        assert_true(seq->snapshot[i] > seq->snapshot[i - 1]);
    feed(e, seq, ids, TOKENS, 1, NULL);
    uint32_t middle = seq->snapshot[1];
    assert_int_equal(seq_truncate(seq, middle + 1), middle);
    assert_int_equal(seq->snapshots, 2);
    assert_int_equal(seq_truncate(seq, seq->snapshot[0] - 1), 0);
    assert_int_equal(seq->snapshots, 0);
    seq_free(&seq);
    close_all(e);
}

/* A state is memory like pages: without a free one a sequence does not fit; copies give way. */
static void states_are_counted(void **state) {
    (void)state;
    struct engine *e = make(1); /* four states */
    struct seq *seq[4];
    for (int i = 0; i < 4; i++) seq[i] = seq_new(e);
    for (int i = 0; i < 3; i++) feed(e, seq[i], ids, 8, i == 0 ? 8 : 1, NULL);
    assert_int_equal(seq[0]->snapshots, 1);
    feed(e, seq[1], ids, 16, 8, NULL);
    assert_int_equal(seq[1]->snapshots, 0); /* there is no room */
    struct engine_item item = {.seq = seq[3], .id = ids, .n = 1};
    const float *logits;
    assert_false(engine_fits(e, &item, 1));
    assert_int_equal(engine_step(e, &item, 1, &logits, NULL), OB_ERR_LIMIT);
    feed(e, seq[0], ids, 16, 8, NULL); /* its own old copy makes room */
    assert_int_equal(seq[0]->snapshot[0], 16);
    seq_free(&seq[0]);
    assert_true(engine_fits(e, &item, 1));
    assert_int_equal(seq_truncate(seq[2], 5), 0);
    for (int i = 1; i < 4; i++) seq_free(&seq[i]);
    close_all(e);
}

/* Two layers of a convolution and of a mean with 3 x 32 floats each, and of 2 matrices 16 x 16; two
 * of attention; two more in a window, beside which are half as many keys. */
static void bytes_of_a_sequence(void **state) {
    (void)state;
    struct engine *e = make(0);
    struct kv_types kv = {KV_f16, KV_f16};
    const uint64_t states = 2 * (2 * 96 + 512) * sizeof(float), page = 2 * 64 * 2 * (16 + 16) * 2;
    assert_int_equal(e->groups, 5);
    assert_int_equal(model_kv_bytes(e->model, 0, kv), states);
    assert_int_equal(model_kv_bytes(e->model, 65, kv), states + (2 + 2 + 1) * page);
    close_all(e);
}

int main(void) {
    fill_ids();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rolled_back),
        cmocka_unit_test(forked),
        cmocka_unit_test(forks_share),
        cmocka_unit_test(on_two_devices),
        cmocka_unit_test(begins_with_zeros),
        cmocka_unit_test(snapshots_are_few_and_spread),
        cmocka_unit_test(states_are_counted),
        cmocka_unit_test(bytes_of_a_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
