/* SPDX-License-Identifier: Apache-2.0
 *
 * check_law.c: the law on graphs of the cpu device: the bits of a row depend on the tokens before
 * it alone. Layers of attention, products and experts, or of the recurrent ops, run a sequence
 * whole; then in chunks, beside other sequences, with other numbers of threads, and each row must
 * come out the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/blocks/alibi.h"
#include "tiny.h"

enum { LENGTH = 1300, HEAD = 32, COLS = 4 * HEAD, BESIDE = 40 };

struct law_case {
    const char *on; /* see tiny_open() */
    struct kv_types kv;
    uint32_t window, span, chunk, threads; /* span: chunks of attention in place of a window */
    bool beside, bidirectional, states;    /* states: the recurrent layers */
    uint32_t wide;                         /* the layers of heads so wide */
};

/* Few experts, so that one has more tokens than a device takes at once. */
static value_id mixture(struct tiny *t, value_id x) {
    enum { EXPERTS = 3, USED = 2, WIDTH = 64 };
    struct weight *w[2] = {tiny_experts(t, quant_list[QUANT_q8_0], EXPERTS, WIDTH, COLS),
                           tiny_experts(t, quant_list[QUANT_f16], EXPERTS, WIDTH, COLS)},
                  *down = tiny_experts(t, quant_list[QUANT_q8_0], EXPERTS, COLS, WIDTH),
                  *router = tiny_weight(t, quant_list[QUANT_f32], EXPERTS, COLS);
    value_id out[2], logits = graph_linear1(&t->graph, x, router, NULL);
    value_id route = graph_route(&t->graph, logits, &(struct route_args){.used = USED});
    graph_linear_experts(&t->graph, x, route, 2, w, NULL, out);
    value_id h = graph_glu(&t->graph, out[0], out[1], ACT_SILU);
    graph_linear_experts(&t->graph, h, route, 1, &down, NULL, out);
    return graph_combine(&t->graph, out[0], route);
}

enum { IDS = TINY_POSITIONS + 17 * TINY_SEQS };

/* Every recurrent op in a residual stream, twice: two layers share each group of states. */
static value_id make_states(struct tiny *t) {
    enum { HEADS = 4, K_HEADS = 2, N = 6 };
    const struct quant *f32 = quant_list[QUANT_f32];
    struct graph *g = &t->graph;
    value_id x = tiny_input(t, IDS, COLS);
    for (int layer = 0; layer < 2; layer++) {
        struct weight *w[4] = {
            tiny_weight(t, f32, K_HEADS * HEAD, COLS), tiny_weight(t, f32, K_HEADS * HEAD, COLS),
            tiny_weight(t, f32, HEADS * N, COLS), tiny_weight(t, f32, HEADS * N, COLS)};
        struct weight *taps = tiny_weight(t, f32, COLS, 4), *a = tiny_weight(t, f32, COLS, N);
        value_id qkbc[4], decay = graph_softcap(g, tiny_input(t, IDS, HEADS), 0.9f);
        graph_linear(g, x, 4, w, NULL, qkbc);
        value_id k = graph_norm(g, qkbc[1], NULL, NULL, NORM_RMS, 1e-6f, HEAD);
        struct delta_args delta = {.q = qkbc[0], .k = graph_scale(g, k, 0.17f), .v = x,
                                   .decay = decay, .beta = NO_VALUE, .heads = HEADS,
                                   .k_heads = K_HEADS, .k_dim = HEAD, .v_dim = HEAD,
                                   .delta = layer == 0, .k_tiled = layer == 1, .scale = 0.2f};
        value_id y = graph_conv1d(g, graph_delta(g, &delta), taps, NULL, 4);
        y = graph_norm(g, graph_add(g, y, graph_token_shift(g, x)), NULL, NULL, NORM_RMS, 1e-6f,
                       COLS);
        a->data = check_input(t->row, (size_t)COLS * N, -4, -0.1f);
        struct weight *steps = tiny_weight(t, f32, IDS, COLS);
        steps->data = check_input(t->row, (size_t)IDS * COLS, 0, 1);
        struct scan_args scan = {.x = y, .dt = graph_embed(g, steps, 1), .b = qkbc[2],
                                 .c = qkbc[3], .a = a, .heads = HEADS};
        y = graph_add(g, y, graph_scan(g, &scan));
        struct mlstm_args mlstm = {.q = qkbc[0], .k = qkbc[1], .v = y, .gate = decay,
                                   .log_decay = decay, .heads = HEADS,
                                   .k_dim = HEAD * K_HEADS / HEADS, .v_dim = HEAD, .scale = 0.2f,
                                   .eps = 1e-6f};
        y = graph_add(g, y, graph_mlstm(g, &mlstm));
        y = graph_wkv4(g, x, y, tiny_weight(t, f32, 1, COLS), tiny_weight(t, f32, 1, COLS));
        uint32_t series = layer == 0 ? 1 : 2, every = layer == 0 ? 100 : 7;
        value_id kv = graph_tile(g, y, 1, COLS, series), gate = graph_tile(g, x, 1, COLS, series);
        struct weight *places = tiny_weight(t, f32, every, series * COLS);
        y = graph_add(g, y, graph_compress(g, kv, gate, places, every, series == 2));
        x = graph_norm(g, graph_add(g, x, y), NULL, NULL, NORM_RMS, 1e-6f, COLS);
    }
    return x;
}

/* Two heads choose half of what there is, or more. */
static void selects(struct tiny *t, value_id x, struct attention_args *args) {
    struct weight *w[3] = {tiny_weight(t, quant_list[QUANT_f16], 2 * HEAD, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], 2, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], HEAD, COLS)};
    value_id out[3];
    graph_linear(&t->graph, x, 3, w, (struct weight *[3]){NULL}, out);
    args->selects = true;
    args->selection = graph_index_select(&t->graph, out[0], out[1], out[2], LENGTH / 2, 0);
}

/* Each KV head chooses a few blocks; then attention has biases by distance and sinks by token. */
static void nears(struct tiny *t, value_id x, struct attention_args *args) {
    struct weight *w[4] = {tiny_weight(t, quant_list[QUANT_f16], 4 * 70, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], 4, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], 2 * HEAD, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], HEAD, COLS)};
    value_id out[4];
    graph_linear(&t->graph, x, 4, w, (struct weight *[4]){NULL}, out);
    args->selects = true;
    args->selection = graph_block_select(&t->graph, out[2], out[3], 16, 20, 2);
    args->has_by_distance = args->has_token_sinks = true;
    args->by_distance = out[0];
    args->token_sinks = out[1];
}

/* Beside a window one key for each three positions, of which an index chooses. */
static void blocks(struct tiny *t, value_id x, struct attention_args *args) {
    struct weight *w[4] = {tiny_weight(t, quant_list[QUANT_f16], COLS / 2, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], 2 * HEAD, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], 2, COLS),
                           tiny_weight(t, quant_list[QUANT_f16], HEAD, COLS)};
    value_id out[4];
    graph_linear(&t->graph, x, 4, w, (struct weight *[4]){NULL}, out);
    args->has_beside = args->selects = true;
    args->every = 3;
    args->beside = out[0];
    args->selection = graph_index_select(&t->graph, out[1], out[2], out[3], 40, 3);
}

/* What layer `layer` asks of attention: 0 the window or chunk, 1 sinks and slopes, and keys that an
 * index selects; 2 reads what layer 0 has stored, and comes after all others. */
static struct attention_args args_of(struct tiny *t, const struct law_case *c, int layer) {
    struct attention_args args = {.heads = 4, .kv_heads = 2, .k_dim = HEAD, .v_dim = HEAD,
                                  .scale = 0.03f, .bidirectional = c->bidirectional};
    if (layer == 1) {
        args.alibi = alibi_slopes(&t->arena, 4, 8);
        args.sinks = tiny_weight(t, quant_list[QUANT_f32], 1, 4);
        args.sinks->data = check_input(t->row, 4, 5, 25); /* the size of the scores */
        return args;
    }
    args.window = c->window;
    args.chunk = c->span;
    args.shares = layer == 2;
    return args;
}

static value_id make(struct tiny *t, const struct law_case *c) {
    value_id x = tiny_input(t, IDS, COLS);
    uint32_t cache = 0;
    for (int layer = 0; layer < 2; layer++) {
        struct weight *w[3] = {tiny_weight(t, quant_list[QUANT_q8_0], COLS, COLS),
                               tiny_weight(t, quant_list[QUANT_q8_0], COLS / 2, COLS),
                               tiny_weight(t, quant_list[QUANT_f16], COLS / 2, COLS)};
        value_id qkv[3];
        graph_linear(&t->graph, x, 3, w, (struct weight *[3]){NULL}, qkv);
        struct attention_args args = args_of(t, c, layer);
        if (layer == 1) selects(t, x, &args);
        if (layer == 0 && !c->bidirectional && !c->window && !c->span) nears(t, x, &args);
        if (layer == 0 && c->window && !c->bidirectional) blocks(t, x, &args);
        value_id y = graph_attention(&t->graph, qkv[0], qkv[1], qkv[2], &args);
        if (layer == 0) cache = graph_attention_cache(&t->graph, y);
        x = graph_norm(&t->graph, graph_add(&t->graph, x, y), NULL, NULL, NORM_RMS, 1e-6f, COLS);
        x = graph_add(&t->graph, x, mixture(t, x));
        x = graph_norm(&t->graph, x, NULL, NULL, NORM_RMS, 1e-6f, COLS); /* or softmax is 0 or 1 */
    }
    struct attention_args args = args_of(t, c, 2);
    args.shared_cache = cache;
    return graph_attention(&t->graph, x, NO_VALUE, NO_VALUE, &args);
}

/* Heads as models have them, seven of a KV head, before integer products. */
static value_id make_wide(struct tiny *t, const struct law_case *c) {
    enum { HEADS = 14, KV_HEADS = 2 };
    const struct quant *q8_0 = quant_list[QUANT_q8_0];
    struct graph *g = &t->graph;
    value_id x = tiny_input(t, IDS, COLS);
    for (int layer = 0; layer < 2; layer++) {
        struct weight *w[3] = {tiny_weight(t, q8_0, HEADS * c->wide, COLS),
                               tiny_weight(t, q8_0, KV_HEADS * c->wide, COLS),
                               tiny_weight(t, q8_0, KV_HEADS * c->wide, COLS)};
        value_id qkv[3];
        graph_linear(g, x, 3, w, NULL, qkv);
        struct attention_args args = {.heads = HEADS, .kv_heads = KV_HEADS, .k_dim = c->wide,
                                      .v_dim = c->wide, .scale = 0.02f};
        if (layer == 0) args.window = c->window;
        else args.sinks = tiny_weight(t, quant_list[QUANT_f32], 1, HEADS);
        value_id y = graph_attention(g, qkv[0], qkv[1], qkv[2], &args);
        y = graph_linear1(g, y, tiny_weight(t, q8_0, COLS, HEADS * c->wide), NULL);
        x = graph_norm(g, graph_add(g, x, y), NULL, NULL, NORM_RMS, 1e-6f, COLS);
    }
    return x;
}

static void whole(struct tiny *t, const struct law_case *c, float *out) {
    struct tiny_run run;
    tiny_open(&run, t, c->on, 1, c->kv, LENGTH);
    tiny_step(&run, (const uint32_t[TINY_SEQS]){LENGTH}, out);
    tiny_close(&run);
}

/* Chunks of c->chunk tokens (0: random sizes); in the last ones single tokens, as in decode. */
static void chunked(struct tiny *t, const struct law_case *c, float *out) {
    enum { DECODED = 20 };
    struct tiny_run run;
    tiny_open(&run, t, c->on, c->threads, c->kv, LENGTH + 3 * BESIDE);
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

/* All of the sequence in one step, among others. */
static void beside(struct tiny *t, const struct law_case *c, float *out) {
    struct tiny_run run;
    uint32_t count[TINY_SEQS] = {LENGTH, BESIDE, 0, 1};
    tiny_open(&run, t, c->on, c->threads, c->kv, LENGTH + BESIDE + 1);
    static float rows[(LENGTH + BESIDE + 1) * COLS];
    tiny_step(&run, count, rows);
    memcpy(out, rows, (size_t)LENGTH * COLS * sizeof *out);
    tiny_close(&run);
}

static void run(struct check_row *row, const void *arg) {
    const struct law_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = c->states ? make_states(&t) : c->wide ? make_wide(&t, c) : make(&t, c);
    size_t n = (size_t)LENGTH * COLS;
    float *want = check_output(row, n), *got = check_output(row, n);
    whole(&t, c, want);
    for (size_t i = 0; i < n; i++) /* two NaN would be equal */
        if (!isfinite(want[i])) check_end(row, "[%zu] is %g", i, (double)want[i]);
    if (c->bidirectional) beside(&t, c, got);
    else chunked(&t, c, got);
    check_equal(row, got, want, n);
    arena_free(&t.arena);
}

static void run_all(struct check *check, const char *on) {
    static const struct law_case cases[] = {
        {.chunk = 64, .threads = 2},
        {.chunk = 0, .threads = 3, .beside = true},
        {.chunk = 0, .threads = 1, .window = 100},
        {.chunk = 0, .threads = 4, .window = 600, .beside = true},
        {.chunk = 7, .threads = 8, .window = 64},
        {.chunk = 0, .threads = 3, .span = 600},
        {.threads = 3, .window = 300, .bidirectional = true},
    };
    for (int kv = 0; kv <= KV_TYPES; kv++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct law_case c = cases[i];
            c.on = on;
            c.states = kv == KV_TYPES; /* no KV in it */
            if (c.states && (c.span || c.bidirectional)) continue;
            if (!c.states) c.kv = (struct kv_types){(enum kv_type)kv, (enum kv_type)kv};
            check_run(check, run, &c, "graph.%s.%s.chunk%u_threads%u_window%u%s%s%s", on,
                      c.states ? "states" : kv_name(c.kv.k), c.chunk, c.threads, c.window,
                      c.span ? "_span" : "", c.beside ? "_beside" : "",
                      c.bidirectional ? "_bidirectional" : "");
        }
    static const struct law_case wide[] = {
        {.wide = 64, .threads = 2, .beside = true},
        {.wide = 128, .threads = 2, .window = 200},
        {.wide = 256, .threads = 2, .chunk = 20},
    };
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        struct law_case c = wide[i];
        c.on = on;
        c.kv = (struct kv_types){KV_f16, KV_f16};
        check_run(check, run, &c, "graph.%s.heads%u", on, c.wide);
    }
}

void check_law(struct check *check) {
    CHECK_ISAS(check, isa)
        if (isa != CPU_SCALAR || cpu_best() == CPU_SCALAR || check_bench(check))
            run_all(check, cpu_isa_name(isa));
    if (check_device(check)) run_all(check, check_device(check));
}
