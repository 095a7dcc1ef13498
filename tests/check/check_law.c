/* SPDX-License-Identifier: Apache-2.0
 *
 * check_law.c: the law on graphs of the cpu device: the bits of a row depend on the tokens before
 * it alone. Two layers of attention, products and experts run a sequence whole; then in chunks,
 * beside other sequences, with other numbers of threads, and each row must come out the same. */
#include <stdio.h>

#include "tiny.h"

enum { LENGTH = 1300, HEAD = 32, COLS = 4 * HEAD, BESIDE = 40 };

struct law_case {
    enum cpu_isa isa;
    struct kv_types kv;
    uint32_t window, chunk, threads;
    bool beside;
};

/* Few experts, so that one has more tokens than a device takes at once. */
static value_id mixture(struct tiny *t, value_id x) {
    enum { EXPERTS = 3, USED = 2, WIDTH = 64 };
    struct weight *w[2] = {tiny_experts(t, quant_list[QUANT_q8_0], EXPERTS, WIDTH, COLS),
                           tiny_experts(t, quant_list[QUANT_f16], EXPERTS, WIDTH, COLS)},
                  *down = tiny_experts(t, quant_list[QUANT_q8_0], EXPERTS, COLS, WIDTH),
                  *router = tiny_weight(t, quant_list[QUANT_f32], EXPERTS, COLS);
    value_id out[2], logits = graph_linear1(&t->graph, x, router, NULL);
    value_id route = graph_route(&t->graph, logits, ROUTE_SOFTMAX, USED);
    graph_linear_experts(&t->graph, x, route, 2, w, out);
    value_id h = graph_glu(&t->graph, out[0], out[1], ACT_SILU);
    graph_linear_experts(&t->graph, h, route, 1, &down, out);
    return graph_combine(&t->graph, out[0], route);
}

static value_id make(struct tiny *t, uint32_t window) {
    uint32_t ids = TINY_POSITIONS + 17 * TINY_SEQS;
    value_id x = tiny_input(t, ids, COLS);
    for (int layer = 0; layer < 2; layer++) {
        struct weight *w[3] = {tiny_weight(t, quant_list[QUANT_q8_0], COLS, COLS),
                               tiny_weight(t, quant_list[QUANT_q8_0], COLS / 2, COLS),
                               tiny_weight(t, quant_list[QUANT_f16], COLS / 2, COLS)};
        value_id qkv[3];
        graph_linear(&t->graph, x, 3, w, (struct weight *[3]){NULL}, qkv);
        struct attention_args args = {.heads = 4, .kv_heads = 2, .k_dim = HEAD, .v_dim = HEAD,
                                      .window = layer == 0 ? window : 0, .scale = 0.25f};
        value_id y = graph_attention(&t->graph, qkv[0], qkv[1], qkv[2], &args);
        x = graph_norm(&t->graph, graph_add(&t->graph, x, y), NULL, NULL, NORM_RMS, 1e-6f, COLS);
        x = graph_add(&t->graph, x, mixture(t, x));
    }
    return x;
}

static void whole(struct tiny *t, const struct law_case *c, float *out) {
    struct tiny_run run;
    tiny_open(&run, t, cpu_isa_name(c->isa), 1, c->kv, LENGTH);
    tiny_step(&run, (const uint32_t[TINY_SEQS]){LENGTH}, out);
    tiny_close(&run);
}

/* Chunks of c->chunk tokens (0: random sizes); in the last ones single tokens, as in decode. */
static void chunked(struct tiny *t, const struct law_case *c, float *out) {
    enum { DECODED = 20 };
    struct tiny_run run;
    tiny_open(&run, t, cpu_isa_name(c->isa), c->threads, c->kv, LENGTH + 3 * BESIDE);
    static float rows[(LENGTH + 3 * BESIDE) * COLS];
    for (uint32_t done = 0, n; done < LENGTH; done += n) {
        uint32_t left = LENGTH - done;
        n = c->chunk ? c->chunk : 1 + check_below(t->row, 300);
        if (left > DECODED && n > left - DECODED) n = left - DECODED;
        if (left <= DECODED) n = 1;
        uint32_t count[TINY_SEQS] = {n};
        for (uint32_t s = 1; c->beside && s < TINY_SEQS; s++)
            if (run.past[s] + BESIDE < TINY_POSITIONS) count[s] = check_below(t->row, BESIDE);
        tiny_step(&run, count, rows);
        for (uint32_t i = 0; i < n * COLS; i++) out[(size_t)done * COLS + i] = rows[i];
    }
    tiny_close(&run);
}

static void run(struct check_row *row, const void *arg) {
    const struct law_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = make(&t, c->window);
    size_t n = (size_t)LENGTH * COLS;
    float *want = check_output(row, n), *got = check_output(row, n);
    whole(&t, c, want);
    chunked(&t, c, got);
    check_equal(row, got, want, n);
    arena_free(&t.arena);
}

void check_law(struct check *check) {
    static const struct law_case cases[] = {
        {.chunk = 64, .threads = 2},
        {.chunk = 0, .threads = 3, .beside = true},
        {.chunk = 0, .threads = 1, .window = 100},
        {.chunk = 0, .threads = 4, .window = 600, .beside = true},
        {.chunk = 7, .threads = 8, .window = 64},
    };
    CHECK_ISAS(check, isa) {
        if (isa == CPU_SCALAR && cpu_best() != CPU_SCALAR && !check_bench(check)) continue;
        for (int kv = 0; kv < KV_TYPES; kv++)
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct law_case c = cases[i];
                c.isa = isa;
                c.kv = (struct kv_types){(enum kv_type)kv, (enum kv_type)kv};
                check_run(check, run, &c, "graph.%s.%s.chunk%u_threads%u_window%u%s",
                          cpu_isa_name(isa), kv_name((enum kv_type)kv), c.chunk, c.threads,
                          c.window, c.beside ? "_beside" : "");
            }
    }
}
