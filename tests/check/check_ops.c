/* SPDX-License-Identifier: Apache-2.0
 *
 * check_ops.c: each op of the list, as a graph on the cpu device with each ISA, against the ref
 * device. A new op does not link until it has a maker here. */
#include <math.h>

#include "tiny.h"

enum { TOKENS = 70, IDS = TOKENS + 64 };

typedef value_id make_fn(struct tiny *t);

static value_id make_add(struct tiny *t) {
    return graph_add(&t->graph, tiny_input(t, IDS, 48), tiny_input(t, IDS, 48));
}
static value_id make_attention(struct tiny *t) {
    value_id sum = NO_VALUE;
    for (uint32_t window = 0; window <= 40; window += 20) { /* layers 1 and 2 differ from 0 */
        value_id q = tiny_input(t, IDS, 6 * 32), k = tiny_input(t, IDS, 2 * 32);
        value_id v = tiny_input(t, IDS, 2 * 64);
        struct attention_args args = {.heads = 6, .kv_heads = 2, .k_dim = 32, .v_dim = 64,
                                      .window = window, .scale = 0.5f, .softcap = (float)window};
        value_id y = graph_attention(&t->graph, q, k, v, &args);
        sum = sum == NO_VALUE ? y : graph_add(&t->graph, sum, y);
    }
    return sum;
}
/* Eight experts, of which a token has three; enough tokens for some to have many, or none. */
static value_id make_route(struct tiny *t) {
    return graph_route(&t->graph, tiny_input(t, IDS, 8), ROUTE_SOFTMAX, 3);
}
static value_id make_linear_experts(struct tiny *t) {
    struct weight *w[3] = {tiny_experts(t, quant_list[QUANT_f16], 8, 64, 96),
                           tiny_experts(t, quant_list[QUANT_q8_0], 8, 64, 96),
                           tiny_experts(t, quant_list[QUANT_q8_0], 8, 64, 64)};
    value_id x = tiny_input(t, IDS, 96), out[2], down;
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 8), ROUTE_SOFTMAX_CHOSEN, 3);
    graph_linear_experts(&t->graph, x, route, 2, w, out);
    graph_linear_experts(&t->graph, graph_add(&t->graph, out[0], out[1]), route, 1, w + 2, &down);
    return graph_combine(&t->graph, down, route);
}
static value_id make_combine(struct tiny *t) {
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], 5, 33, 16);
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 5), ROUTE_SOFTMAX, 2), out;
    graph_linear_experts(&t->graph, tiny_input(t, IDS, 16), route, 1, &w, &out);
    return graph_combine(&t->graph, out, route);
}
static value_id make_embed(struct tiny *t) {
    return graph_embed(&t->graph, tiny_weight(t, quant_list[QUANT_q8_0], IDS, 96), 3.5f);
}
static value_id make_gather_rows(struct tiny *t) {
    return graph_gather_rows(&t->graph, tiny_input(t, IDS, 33));
}
static value_id make_glu(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 50), up = tiny_input(t, IDS, 50);
    for (int act = ACT_SILU; act <= ACT_RELU; act++)
        up = graph_add(&t->graph, up, graph_glu(&t->graph, x, up, (enum act_kind)act));
    return up;
}
static value_id make_linear(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 96), out[3];
    struct weight *w[3] = {tiny_weight(t, quant_list[QUANT_f16], 40, 96),
                           tiny_weight(t, quant_list[QUANT_f32], 40, 96),
                           tiny_weight(t, quant_list[QUANT_q8_0], 40, 96)};
    struct weight *bias[3] = {tiny_weight(t, quant_list[QUANT_f32], 1, 40), NULL,
                              tiny_weight(t, quant_list[QUANT_bf16], 1, 40)};
    graph_linear(&t->graph, x, 3, w, bias, out);
    return graph_add(&t->graph, graph_add(&t->graph, out[0], out[1]), out[2]);
}
static value_id make_norm(struct tiny *t) {
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], 1, 20);
    struct weight *b = tiny_weight(t, quant_list[QUANT_f16], 1, 20);
    value_id x = graph_norm(&t->graph, tiny_input(t, IDS, 60), w, NULL, NORM_RMS, 1e-6f, 20);
    return graph_norm(&t->graph, x, w, b, NORM_LAYER, 1e-5f, 20);
}
static value_id make_rope_table(struct tiny *t) {
    float *freq = arena_array(&t->arena, 24, sizeof *freq);
    for (int i = 0; i < 24; i++) freq[i] = powf(10000, -(float)i / 24);
    return graph_rope_table(&t->graph, freq, 24, 1.1f);
}
static value_id make_rope(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 3 * 50), table = make_rope_table(t);
    x = graph_rope(&t->graph, x, table, 3, 50, false);
    return graph_rope(&t->graph, x, table, 3, 50, true);
}
static value_id make_scale(struct tiny *t) {
    return graph_scale(&t->graph, tiny_input(t, IDS, 31), -0.3f);
}
static value_id make_softcap(struct tiny *t) {
    return graph_softcap(&t->graph, tiny_input(t, IDS, 31), 0.5f);
}

static make_fn *const makers[OP_COUNT] = {
#define OP(name, text) [OP_##name] = make_##name,
#include "graph/ops.def"
#undef OP
};

/* A node of three weights gives the bits of three nodes of one; biases stay with their weights. */
static void run_apart(struct check_row *row, const void *arg) {
    enum { ROWS = 40, COLS = 96, N = TOKENS * ROWS };
    const enum cpu_isa *isa = arg;
    const enum quant_index quant[3] = {QUANT_q8_0, QUANT_f32, QUANT_q8_0};
    struct tiny t;
    tiny_init(&t, row);
    struct weight *w[3], *bias[3], *x = tiny_weight(&t, quant_list[QUANT_f32], IDS, COLS);
    for (int i = 0; i < 3; i++) {
        w[i] = tiny_weight(&t, quant_list[quant[i]], ROWS, COLS);
        bias[i] = i == 1 ? NULL : tiny_weight(&t, quant_list[QUANT_f32], 1, ROWS);
    }
    for (int i = 0; i < 3; i++) {
        float *got[2];
        for (int together = 0; together < 2; together++) {
            value_id out[3];
            graph_init(&t.graph, &t.arena);
            value_id in = graph_embed(&t.graph, x, 1);
            graph_linear(&t.graph, in, together ? 3 : 1, together ? w : w + i,
                         together ? bias : bias + i, out);
            t.graph.logits = together ? out[i] : out[0];
            struct tiny_run device;
            struct kv_types kv = {KV_f32, KV_f32};
            tiny_open(&device, &t, cpu_isa_name(*isa), 3, kv, TOKENS);
            got[together] = check_output(row, N);
            tiny_step(&device, (const uint32_t[TINY_SEQS]){TOKENS}, got[together]);
            tiny_close(&device);
        }
        check_equal(row, got[1], got[0], N);
    }
    arena_free(&t.arena);
}

struct ops_case { enum op op; enum cpu_isa isa; enum kv_type kv; };

/* A quantized K takes the query in int8, which ref does not. */
static double bound(const struct ops_case *c) {
    if (c->op == OP_linear || c->op == OP_linear_experts) return 1e-4;
    return kv_quant(c->kv)->block > 1 ? 2e-4 : 1e-11;
}

static void run(struct check_row *row, const void *arg) {
    const struct ops_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = makers[c->op](&t);
    size_t n = (size_t)(TOKENS + 3) * t.graph.value[t.graph.logits].cols;
    float *got = check_output(row, n), *want = check_output(row, n);
    const uint32_t count[TINY_SEQS] = {TOKENS, 0, 3, 0};
    for (int side = 0; side < 2; side++) {
        struct tiny_run device;
        struct kv_types kv = {c->kv, c->kv};
        tiny_open(&device, &t, side == 0 ? cpu_isa_name(c->isa) : NULL, 3, kv, TOKENS + 3);
        tiny_step(&device, count, side == 0 ? got : want);
        tiny_close(&device);
    }
    check_nmse(row, got, want, n, bound(c));
    arena_free(&t.arena);
}

void check_ops(struct check *check) {
    CHECK_ISAS(check, isa) check_run(check, run_apart, &isa, "linear.%s.apart", cpu_isa_name(isa));
    for (int op = 0; op < OP_COUNT; op++)
        CHECK_ISAS(check, isa)
            for (int kv = 0; kv < (op == OP_attention ? KV_TYPES : 1); kv++) {
                struct ops_case c = {(enum op)op, isa, (enum kv_type)kv};
                check_run(check, run, &c, "%s.%s%s%s", op_name(c.op), cpu_isa_name(isa),
                          op == OP_attention ? "." : "", op == OP_attention ? kv_name(c.kv) : "");
            }
}
