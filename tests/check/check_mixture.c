/* SPDX-License-Identifier: Apache-2.0
 *
 * check_mixture.c: mixtures of experts on a device that groups a step's pairs: a norm, experts with
 * a gate, experts of their rows, the sum. Held against the ref device; and bit for bit against
 * steps of other sizes, which group otherwise, and against each node and kernel by itself. */
#include <math.h>

#include "tiny.h"

/* Of EXPERTS the last REST have no matrix. 300 tokens are more than a tile an expert; K are two and
 * three segments; rows end within a tile of 16. */
enum { TOKENS = 300, COLS = 512, WIDTH = 768, OUT = 530, USED = 4, EXPERTS = 17, REST = 2 };
enum { IDS = TINY_POSITIONS + 17 * TINY_SEQS };

struct mixture_case {
    const char *on;
    enum quant_index up, gate, down;
    bool biased;
};

static value_id make(struct tiny *t, const struct mixture_case *c) {
    enum { MATRICES = EXPERTS - REST };
    struct graph *g = &t->graph;
    struct weight *w[2] = {tiny_experts(t, quant_list[c->up], MATRICES, WIDTH, COLS),
                           tiny_experts(t, quant_list[c->gate], MATRICES, WIDTH, COLS)},
                  *down = tiny_experts(t, quant_list[c->down], MATRICES, OUT, WIDTH),
                  *bias[2] = {tiny_experts(t, quant_list[QUANT_f32], MATRICES, 1, WIDTH), NULL},
                  *down_bias = tiny_experts(t, quant_list[QUANT_f32], MATRICES, 1, OUT),
                  *by = tiny_weight(t, quant_list[QUANT_f32], 1, COLS);
    value_id x = graph_norm(g, tiny_input(t, IDS, COLS), by, NULL, NORM_RMS, 1e-5f, COLS), out[2];
    const struct route_args args = {.used = USED, .normalize = true, .scale = 1};
    value_id route = graph_route(g, tiny_input(t, IDS, EXPERTS), &args);
    graph_linear_experts(g, x, route, 2, w, c->biased ? bias : NULL, out);
    value_id h = graph_glu(g, out[1], out[0], ACT_SILU);
    graph_linear_experts(g, h, route, 1, &down, c->biased ? &down_bias : NULL, out);
    return graph_combine(g, out[0], route);
}

/* One step, or chunks that few and many tokens a step are in. */
static void steps(struct tiny *t, const char *on, const struct device_options *options, bool chunks,
                  float *out) {
    static const uint32_t chunk[] = {1, 1, 1, 2, 7, 8, 9, 20, 25, 26, 64, 65};
    struct tiny_run run;
    if (options) tiny_open_with(&run, t, on, options, (struct kv_types){KV_f32, KV_f32}, TOKENS);
    else tiny_open(&run, t, on, 3, (struct kv_types){KV_f32, KV_f32}, TOKENS);
    for (uint32_t at = 0, i = 0, n; at < TOKENS; at += n, i++) {
        n = chunks && i < sizeof chunk / sizeof chunk[0] ? chunk[i] : TOKENS - at;
        tiny_step(&run, (const uint32_t[TINY_SEQS]){n}, out + (size_t)at * OUT);
    }
    tiny_close(&run);
}

static void run(struct check_row *row, const void *arg) {
    const struct mixture_case *c = arg;
    const size_t n = (size_t)TOKENS * OUT;
    const struct device_options alone = {.threads = 1, .plain = true, .unfused = true};
    float *want = check_output(row, n), *got = check_output(row, n);
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = make(&t, c);
    steps(&t, NULL, NULL, false, want);
    steps(&t, c->on, NULL, false, got);
    check_nmse(row, got, want, n, device_find(c->on) ? 1e-6 : 4e-4); /* float16; 8 bits, twice */
    for (size_t i = 0; i < n; i++) want[i] = got[i];
    steps(&t, c->on, NULL, true, got);
    check_equal(row, got, want, n);
    if (device_find(c->on)) {
        steps(&t, c->on, &alone, true, got);
        check_equal(row, got, want, n);
    }
    arena_free(&t.arena);
}

static void run_all(struct check *check, const char *on) {
    static const struct mixture_case cases[] = {
        {.up = QUANT_q4_k, .gate = QUANT_q4_k, .down = QUANT_q6_k},
        {.up = QUANT_q5_k, .gate = QUANT_q5_k, .down = QUANT_q4_k, .biased = true},
        {.up = QUANT_q6_k, .gate = QUANT_q8_0, .down = QUANT_q8_0, .biased = true},
        {.up = QUANT_q8_0, .gate = QUANT_f16, .down = QUANT_q5_k},
        {.up = QUANT_q4_0, .gate = QUANT_q4_0, .down = QUANT_bf16, .biased = true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mixture_case c = cases[i];
        c.on = on;
        check_run(check, run, &c, "mixture.%s.%s_%s_%s", on, quant_list[c.up]->name,
                  quant_list[c.gate]->name, quant_list[c.down]->name);
    }
}

void check_mixture(struct check *check) {
    CHECK_ISAS(check, isa)
        if (isa == cpu_best()) run_all(check, cpu_isa_name(isa));
    if (check_device(check)) run_all(check, check_device(check));
}
