/* SPDX-License-Identifier: Apache-2.0
 *
 * check_fused.c: a device that runs a step at once and joins nodes gives the bits of one that runs
 * each node by itself: layers as models have them, prompts and answers of several sequences. */
#include <math.h>

#include "tiny.h"

enum { COLS = 256, HEAD = 64, HEADS = 4, KV_HEADS = 2, WIDTH = 512, LAYERS = 2, TOKENS = 128 };
enum { IDS = TINY_POSITIONS + 17 * TINY_SEQS };

static const uint32_t step[][TINY_SEQS] = {
    {40, 3}, {1, 1}, {1, 1}, {1, 1}, {9, 0, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {80, 1}, {0, 33},
    {40},    {1},    {1},    {1},    {1},       {8},       {8},       {8}};
enum { STEPS = sizeof step / sizeof step[0] };

static value_id norm_heads(struct tiny *t, value_id x) {
    struct weight *by = tiny_weight(t, quant_list[QUANT_f32], 1, HEAD);
    return graph_norm(&t->graph, x, by, NULL, NORM_RMS, 1e-5f, HEAD);
}

static value_id attend(struct tiny *t, value_id x, value_id table, bool norms) {
    struct graph *g = &t->graph;
    struct weight *w[3] = {tiny_weight(t, quant_list[QUANT_q8_0], HEADS * HEAD, COLS),
                           tiny_weight(t, quant_list[QUANT_q8_0], KV_HEADS * HEAD, COLS),
                           tiny_weight(t, quant_list[QUANT_q8_0], KV_HEADS * HEAD, COLS)};
    value_id qkv[3], h;
    h = graph_norm(g, x, tiny_weight(t, quant_list[QUANT_f32], 1, COLS), NULL, NORM_RMS, 1e-5f,
                   COLS);
    graph_linear(g, h, 3, w, NULL, qkv);
    if (norms) qkv[0] = norm_heads(t, qkv[0]);
    if (norms) qkv[1] = norm_heads(t, qkv[1]);
    qkv[0] = graph_rope(g, qkv[0], table, HEADS, HEAD, false);
    qkv[1] = graph_rope(g, qkv[1], table, KV_HEADS, HEAD, false);
    const struct attention_args args = {.heads = HEADS, .kv_heads = KV_HEADS, .k_dim = HEAD,
                                        .v_dim = HEAD, .scale = 0.125f};
    h = graph_attention(g, qkv[0], qkv[1], qkv[2], &args);
    return graph_linear1(g, h, tiny_weight(t, quant_list[QUANT_q8_0], COLS, HEADS * HEAD), NULL);
}

static value_id feed(struct tiny *t, value_id x) {
    struct graph *g = &t->graph;
    struct weight *w[2] = {tiny_weight(t, quant_list[QUANT_q8_0], WIDTH, COLS),
                           tiny_weight(t, quant_list[QUANT_q8_0], WIDTH, COLS)};
    struct weight *by = tiny_weight(t, quant_list[QUANT_f32], 1, COLS);
    struct weight *more = tiny_weight(t, quant_list[QUANT_f32], 1, COLS);
    value_id h = graph_norm(g, x, by, more, NORM_LAYER, 1e-5f, COLS), up[2];
    graph_linear(g, h, 2, w, NULL, up);
    h = graph_glu(g, up[0], up[1], ACT_SILU);
    return graph_linear1(g, h, tiny_weight(t, quant_list[QUANT_q8_0], COLS, WIDTH), NULL);
}

static value_id make(struct tiny *t) {
    static float freq[HEAD / 2];
    struct graph *g = &t->graph;
    for (int i = 0; i < HEAD / 2; i++) freq[i] = 1 / (float)(i + 1);
    const struct rope_table_args angles = {.freq = freq, .magnitude = 1, .half = HEAD / 2};
    value_id x = tiny_input(t, IDS, COLS), table = graph_rope_table(g, &angles);
    for (int layer = 0; layer < LAYERS; layer++) {
        x = graph_add(g, x, attend(t, x, table, layer == 1));
        x = graph_add(g, x, feed(t, x));
    }
    return graph_norm(g, x, NULL, NULL, NORM_RMS, 1e-5f, COLS);
}

static size_t rows_before(uint32_t end) {
    size_t rows = 0;
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t s = 0; s < TINY_SEQS; s++) rows += step[i][s];
    return rows;
}

static void run_steps(struct tiny *t, const char *device, const struct device_options *options,
                      struct kv_types kv, float *out) {
    struct tiny_run run;
    tiny_open_with(&run, t, device, options, kv, TOKENS);
    for (uint32_t i = 0; i < STEPS; i++) tiny_step(&run, step[i], out + rows_before(i) * COLS);
    tiny_close(&run);
}

struct fused_case { const char *device; enum kv_type kv; bool plain, unfused; };

static void run(struct check_row *row, const void *arg) {
    const struct fused_case *c = arg;
    const struct device_options all = {.threads = 1},
                                some = {.threads = 1, .plain = c->plain, .unfused = c->unfused};
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = make(&t);
    size_t n = rows_before(STEPS) * COLS;
    float *want = check_output(row, n), *got = check_output(row, n);
    run_steps(&t, c->device, &some, (struct kv_types){c->kv, c->kv}, want);
    for (size_t i = 0; i < n; i++) /* two NaN would be equal */
        if (!isfinite(want[i])) check_end(row, "[%zu] is %g", i, (double)want[i]);
    run_steps(&t, c->device, &all, (struct kv_types){c->kv, c->kv}, got);
    check_equal(row, got, want, n);
    arena_free(&t.arena);
}

void check_fused(struct check *check) {
    static const struct fused_case cases[] = {{.kv = KV_f16, .plain = true},
                                              {.kv = KV_f16, .unfused = true},
                                              {.kv = KV_q8_0, .plain = true, .unfused = true}};
    for (size_t i = 0; check_device(check) && i < sizeof cases / sizeof cases[0]; i++) {
        struct fused_case c = cases[i];
        c.device = check_device(check);
        check_run(check, run, &c, "fused.%s.%s%s%s", c.device, kv_name(c.kv),
                  c.plain ? ".plain" : "", c.unfused ? ".unfused" : "");
    }
}
