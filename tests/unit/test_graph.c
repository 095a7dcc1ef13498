/* SPDX-License-Identifier: Apache-2.0
 * test_graph.c: building and the memory plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/graph.h"

/* Two layers of a little decoder, the second one with experts. */
static void build(struct graph *g, struct arena *arena) {
    static struct weight embed = {.rows = 100, .cols = 32}, norm = {.rows = 1, .cols = 32},
                         q = {.rows = 64, .cols = 32}, kv = {.rows = 32, .cols = 32},
                         o = {.rows = 32, .cols = 64}, router = {.rows = 6, .cols = 32},
                         up = {.rows = 24, .cols = 32, .experts = 6},
                         down = {.rows = 32, .cols = 24, .experts = 6};
    static const float freq[8];
    graph_init(g, arena);
    const struct rope_table_args rope = {.freq = freq, .half = 8, .magnitude = 1};
    value_id x = graph_embed(g, &embed, 1), table = graph_rope_table(g, &rope);
    for (g->layer = 0; g->layer < 2; g->layer++) {
        value_id out[3], h = graph_norm(g, x, &norm, NULL, NORM_RMS, 1e-5f, 32);
        graph_linear(g, h, 3, (struct weight *[]){&q, &kv, &kv}, NULL, out);
        h = graph_attention(g, graph_rope(g, out[0], table, 4, 16, false),
                            graph_rope(g, out[1], table, 2, 16, false), out[2],
                            &(struct attention_args){.heads = 4, .kv_heads = 2, .k_dim = 16,
                                .v_dim = 16, .window = g->layer ? 8 : 0, .scale = 0.25f});
        x = graph_add(g, x, graph_linear1(g, h, &o, NULL));
        if (g->layer == 0) continue;
        value_id route = graph_route(g, graph_linear1(g, x, &router, NULL),
                                     &(struct route_args){.used = 3});
        graph_linear_experts(g, x, route, 2, (struct weight *[]){&up, &up}, NULL, out);
        h = graph_glu(g, out[0], out[1], ACT_SILU);
        graph_linear_experts(g, h, route, 1, (struct weight *[]){&down}, NULL, out);
        x = graph_add(g, x, graph_combine(g, out[0], route));
    }
    g->logits = graph_linear1(g, graph_gather_rows(g, x), &embed, NULL);
}

static void expert_rows_are_pairs(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct graph g;
    build(&g, &arena);
    for (uint32_t i = 0; i < g.nodes; i++) {
        const struct node *n = &g.node[i];
        const struct value *y = &g.value[n->out[0]];
        if (n->op == OP_glu || n->op == OP_linear_experts) {
            assert_int_equal(y->rows, ROWS_EXPERTS);
            assert_int_equal(value_rows(y, 5, 1, 2), 15);
        }
        if (n->op == OP_route || n->op == OP_combine) assert_int_equal(value_rows(y, 5, 1, 2), 5);
    }
    arena_free(&arena);
}

static void caches_group_by_shape(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct graph g;
    build(&g, &arena);
    assert_false(g.failed);
    assert_int_equal(g.caches, 2);
    assert_int_equal(g.groups, 2);
    assert_int_equal(g.group[0].kind, CACHE_FULL);
    assert_int_equal(g.group[1].kind, CACHE_WINDOW);
    assert_int_equal(g.group[1].window, 8);
    assert_int_equal(g.value[g.logits].cols, 100);
    assert_int_equal(g.value[g.logits].rows, ROWS_LOGITS);
    arena_free(&arena);
}

/* Runs the nodes symbolically: each byte of the block remembers whose it is; a node must find all
 * its inputs whole. */
static void live_values_never_overlap(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct graph g;
    build(&g, &arena);
    for (uint32_t tokens = 1; tokens < 40; tokens += 13) {
        struct graph_plan plan = graph_plan_make(&g, &arena, tokens, 3);
        assert_non_null(plan.offset);
        size_t words = plan.bytes / 4, total = 0;
        value_id *owner = arena_array(&arena, words, sizeof *owner);
        for (uint32_t i = 0; i <= g.nodes; i++) {
            const struct node logits = {.inputs = 1, .in = {g.logits}};
            const struct node *n = i < g.nodes ? &g.node[i] : &logits;
            for (int out = 0; out < 2; out++)
                for (uint32_t k = 0; k < (out ? n->outputs : n->inputs); k++) {
                    value_id v = out ? n->out[k] : n->in[k];
                    size_t rows = value_rows(&g.value[v], tokens, 3, tokens);
                    assert_int_equal(plan.offset[v] % 64, 0);
                    for (size_t w = 0; w < rows * g.value[v].cols; w++) {
                        size_t at = plan.offset[v] / 4 + w;
                        assert_true(at < words);
                        if (out) owner[at] = v;
                        else assert_int_equal(owner[at], v);
                    }
                    if (out) total += rows * g.value[v].cols;
                }
        }
        assert_true(words < total); /* memory is used again */
    }
    arena_free(&arena);
}

/* A layer that reads another's cache stores nothing and makes none; a bidirectional one's window
 * keeps no positions back, for its one step sees all. */
static void caches_are_shared(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    static struct weight embed = {.rows = 100, .cols = 64}, half = {.rows = 100, .cols = 32};
    struct graph g;
    graph_init(&g, &arena);
    value_id q = graph_embed(&g, &embed, 1), kv = graph_embed(&g, &half, 1), y[3];
    struct attention_args args = {.heads = 4, .kv_heads = 2, .k_dim = 16, .v_dim = 16, .scale = 1};
    args.window = 8;
    y[0] = graph_attention(&g, q, kv, kv, &args);
    args.window = 0, args.chunk = 8;
    y[1] = graph_attention(&g, q, kv, kv, &args);
    args.window = 5, args.chunk = 0, args.shares = true;
    args.shared_cache = graph_attention_cache(&g, y[0]);
    y[2] = graph_attention(&g, q, NO_VALUE, NO_VALUE, &args);
    assert_int_equal(graph_attention_cache(&g, y[1]), 1);
    assert_int_equal(graph_attention_cache(&g, y[2]), 0);
    assert_false(graph_may_cut(&g, 3)); /* between the cache and who shares it */
    assert_true(graph_may_cut(&g, 2));
    assert_int_equal(g.node[g.nodes - 1].inputs, 1);
    assert_int_equal(g.caches, 2);
    assert_int_equal(g.groups, 2);
    assert_int_equal(g.group[0].layers, 1);
    assert_int_equal(g.group[1].kind, CACHE_CHUNK);
    assert_false(g.whole);
    args.shares = false, args.bidirectional = true;
    graph_attention(&g, q, kv, kv, &args);
    assert_int_equal(g.group[2].kind, CACHE_FULL);
    assert_true(g.whole);
    assert_non_null(graph_plan_make(&g, &arena, 3, 3).offset);
    arena_free(&arena);
}

/* Where every cache and what is handed on lies on one side; a part's slots begin at 0. */
static void cut_in_parts(void **state) {
    (void)state;
    struct arena arena = ARENA_INIT;
    struct graph g, first, second;
    build(&g, &arena);
    uint32_t at = graph_layer_start(&g, 1);
    assert_int_equal(g.node[at].layer, 1);
    assert_int_equal(g.node[at - 1].layer, 0);
    assert_true(graph_may_cut(&g, at));
    assert_true(graph_part(&g, 0, at, &arena, &first));
    assert_true(graph_part(&g, at, g.nodes, &arena, &second));
    assert_int_equal(first.nodes + second.nodes, g.nodes);
    assert_int_equal(first.logits, NO_VALUE);
    assert_int_equal(second.logits, g.logits);
    uint32_t given = 0; /* the states and the rope table */
    for (value_id v = 0; v < g.values; v++) {
        assert_int_equal(first.value[v].kept, second.value[v].given);
        assert_false(first.value[v].given || second.value[v].kept);
        given += second.value[v].given;
    }
    assert_int_equal(given, 2);
    for (uint32_t i = 0; i < g.groups; i++)
        assert_int_equal(first.group[i].layers + second.group[i].layers, g.group[i].layers);
    assert_int_equal(second.cache[g.caches - 1].slot, 0);
    /* Rows of experts are not handed on. */
    uint32_t glu = at;
    while (g.node[glu].op != OP_glu) glu++;
    assert_false(graph_may_cut(&g, glu));
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(caches_are_shared),
                                       cmocka_unit_test(caches_group_by_shape),
                                       cmocka_unit_test(cut_in_parts),
                                       cmocka_unit_test(expert_rows_are_pairs),
                                       cmocka_unit_test(live_values_never_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
