/* SPDX-License-Identifier: Apache-2.0
 *
 * check_same.c: pairs of graphs that must give the same bits. The ref device shares with cpu all
 * that is not a kernel: which rows, vectors and positions a node takes. These rows see it. */
#include <string.h>

#include "kernels/kernels.h"
#include "tiny.h"

enum { TOKENS = 70, COLS = 60, WIDTH = 20 };

typedef void same_fn(struct tiny *t, value_id out[2]);

static struct weight *vector(struct tiny *t, uint32_t cols) {
    return tiny_weight(t, quant_list[QUANT_f32], 1, cols);
}

/* Each run's own weights are columns' weights. */
static void same_norm(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    struct weight *w = vector(t, COLS), *b = vector(t, COLS);
    value_id x = tiny_input(t, TOKENS, COLS);
    out[0] = graph_norm(g, x, w, b, NORM_RMS, 1e-3f, WIDTH);
    out[1] = graph_affine(g, graph_norm(g, x, NULL, NULL, NORM_RMS, 1e-3f, WIDTH), w, b);
}

/* Ids are positions: the offset moves the table. */
static void same_embed_position(struct tiny *t, value_id out[2]) {
    enum { OFFSET = 3 };
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], TOKENS + OFFSET, COLS);
    struct weight *moved = arena_alloc(&t->arena, sizeof *moved);
    *moved = *w;
    moved->rows = TOKENS;
    moved->data = (const char *)w->data + OFFSET * w->row_bytes;
    out[0] = graph_embed_position(&t->graph, w, OFFSET);
    out[1] = graph_embed(&t->graph, moved, 1);
}

/* Rows by hashes of two and of three tokens, ids being positions; what is before 9 is hidden. */
static void same_embed_ngrams(struct tiny *t, value_id out[2]) {
    enum { PARTS = 3, ROWS = 40, END = 9, WIDE = 2 * COLS };
    static const uint64_t multiplier[] = {(uint64_t)1 << 55 | 12345, (uint64_t)1 << 55 | 777,
                                          (uint64_t)1 << 54 | 99},
                          size[] = {37, 41}, first[] = {40, 77};
    struct ngram_args args = {.order = 3, .heads = 1, .end = END, .multiplier = multiplier,
                              .size = size, .first = first};
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], PARTS, ROWS, COLS);
    struct weight *table = arena_alloc(&t->arena, sizeof *table);
    float *data = arena_array(&t->arena, (size_t)TOKENS * WIDE, sizeof *data);
    for (uint64_t i = 0; i < TOKENS; i++) {
        uint64_t hash = i * multiplier[0];
        for (uint64_t n = 1; n < 3; n++) {
            uint64_t token = i < n || (i > END && i - n < END) ? END : i - n;
            hash ^= token * multiplier[n];
            uint64_t row = first[n - 1] + hash % size[n - 1];
            memcpy(data + i * WIDE + (n - 1) * COLS,
                   (const char *)w->expert[row / ROWS] + row % ROWS * w->row_bytes, w->row_bytes);
        }
    }
    *table = (struct weight){.name = "t", .quant = w->quant, .rows = TOKENS, .cols = WIDE,
                             .row_bytes = 2 * w->row_bytes, .data = data};
    out[0] = graph_embed_ngrams(&t->graph, w, &args);
    out[1] = graph_embed(&t->graph, table, 1);
}

/* Taps apart, and taps of 0 between them. */
static void same_conv1d(struct tiny *t, value_id out[2]) {
    enum { KERNEL = 3, STEP = 2, WIDE = (KERNEL - 1) * STEP + 1 };
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], COLS, KERNEL);
    struct weight *wide = arena_alloc(&t->arena, sizeof *wide);
    float *data = arena_array(&t->arena, COLS * WIDE, sizeof *data);
    for (uint32_t i = 0; i < COLS * WIDE; i++) data[i] = 0;
    for (uint32_t i = 0; i < COLS * KERNEL; i++)
        data[i / KERNEL * WIDE + i % KERNEL * STEP] = ((const float *)w->data)[i];
    *wide = *w;
    wide->cols = WIDE;
    wide->row_bytes = WIDE * sizeof *data;
    wide->data = data;
    value_id x = tiny_input(t, TOKENS, COLS);
    out[0] = graph_conv1d_apart(&t->graph, x, w, NULL, KERNEL, STEP);
    out[1] = graph_conv1d(&t->graph, x, wide, NULL, WIDE);
}

/* Blocks of one position are positions, heads that weigh 1. */
static void same_select(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    value_id q = tiny_input(t, TOKENS, 5 * 32), k = tiny_input(t, TOKENS, 32);
    value_id one = graph_clamp(g, tiny_input(t, TOKENS, 5), 1, 1);
    out[0] = graph_softcap(g, graph_whole_select(g, q, k, 1, 20), TOKENS);
    out[1] = graph_softcap(g, graph_index_select(g, q, one, k, 20, 0), TOKENS);
}

/* The factors as a column by id, which is the position. */
static void same_scale_position(struct tiny *t, value_id out[2]) {
    struct weight *factor = vector(t, TOKENS);
    float *data = arena_array(&t->arena, TOKENS, sizeof *data);
    for (uint32_t i = 0; i < TOKENS; i++)
        data[i] = kernels_table(CPU_SCALAR)->position_factor(i, 0.5f, 2, 8);
    *factor = (struct weight){.name = "f", .quant = factor->quant, .rows = TOKENS, .cols = 1,
                              .row_bytes = sizeof *data, .data = data};
    value_id x = tiny_input(t, TOKENS, COLS);
    out[0] = graph_scale_position(&t->graph, x, 0.5f, 2, 8);
    out[1] = graph_mul(&t->graph, x, graph_embed(&t->graph, factor, 1));
}

/* What is narrower, and the same spread out. */
static void same_narrow(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    value_id x = tiny_input(t, TOKENS, COLS), gate = tiny_input(t, TOKENS, 3);
    value_id wide = graph_tile(g, gate, 3, 1, COLS / 3);
    out[0] = graph_mul(g, graph_glu(g, gate, x, ACT_SILU), gate);
    out[1] = graph_mul(g, graph_glu(g, wide, x, ACT_SILU), wide);
}

/* Columns that all groups share, and as many copies; then the first part again. */
static void same_concat(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    value_id a = tiny_input(t, TOKENS, 3 * 5), once = tiny_input(t, TOKENS, 7);
    value_id copies = graph_tile(g, once, 1, 7, 3);
    out[0] = graph_concat(g, graph_concat(g, a, 5, once, 7, 3), 12, once, 7, 3);
    out[1] = graph_concat(g, graph_concat(g, a, 5, copies, 7, 3), 12, copies, 7, 3);
    out[0] = graph_concat(g, out[0], 57, a, 15, 1);
    out[1] = graph_concat(g, out[1], 57, graph_slice(g, out[1], 3, 19, 0, 5), 15, 1);
}

static value_id make_route(struct tiny *t, uint32_t experts) {
    return graph_route(&t->graph, tiny_input(t, TOKENS, experts), &(struct route_args){.used = 3});
}

/* The bias of an expert is its matrix of one column, times 1. */
static void same_experts_bias(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], 5, 33, 16);
    struct weight *bias = tiny_experts(t, quant_list[QUANT_f32], 5, 1, 33);
    struct weight *column = arena_alloc(&t->arena, sizeof *column);
    *column = *bias;
    column->rows = 33;
    column->cols = 1;
    column->row_bytes = sizeof(float);
    value_id x = tiny_input(t, TOKENS, 16), one = graph_slice(g, x, 1, 16, 0, 1);
    one = graph_clamp(g, one, 1, 1);
    value_id route = make_route(t, 5), added;
    graph_linear_experts(g, x, route, 1, &w, &bias, &out[0]);
    graph_linear_experts(g, x, route, 1, &w, NULL, &out[1]);
    graph_linear_experts(g, one, route, 1, &column, NULL, &added);
    out[1] = graph_combine(g, graph_add(g, out[1], added), route);
    out[0] = graph_combine(g, out[0], route);
}

/* Without a matrix, and with one of zeros. A wide value leaves its memory full to what follows. */
static void same_experts_rest(struct tiny *t, value_id out[2]) {
    enum { EXPERTS = 6, REST = 2, N = 32 };
    static const float zeros[N * N];
    struct graph *g = &t->graph;
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], EXPERTS, N, N);
    struct weight *all = tiny_experts(t, quant_list[QUANT_f32], EXPERTS + REST, N, N);
    const void **expert = arena_array(&t->arena, EXPERTS + REST, sizeof *expert);
    for (int e = 0; e < EXPERTS + REST; e++) expert[e] = e < EXPERTS ? w->expert[e] : zeros;
    all->expert = expert;
    value_id part = graph_slice(g, tiny_input(t, TOKENS, 8 * N), 1, 8 * N, 0, N);
    value_id x = tiny_input(t, TOKENS, N), route = make_route(t, EXPERTS + REST);
    graph_linear_experts(g, x, route, 1, &w, NULL, &out[0]);
    graph_linear_experts(g, x, route, 1, &all, NULL, &out[1]);
    for (int i = 0; i < 2; i++) out[i] = graph_add(g, graph_combine(g, out[i], route), part);
}

/* A token's row for its last experts is a share of it: their matrices are diagonal. */
static void same_route_rest(struct tiny *t, value_id out[2]) {
    enum { EXPERTS = 4 };
    struct graph *g = &t->graph;
    const void **expert = arena_array(&t->arena, EXPERTS, sizeof *expert);
    static const float zero, one = 1;
    for (int e = 0; e < EXPERTS; e++) expert[e] = e < 2 ? &zero : &one;
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], EXPERTS, 1, 1);
    w->expert = expert;
    value_id x = graph_clamp(g, tiny_input(t, TOKENS, 1), 1, 1), y;
    struct route_args args = {.used = 2};
    value_id route = graph_route(g, tiny_input(t, TOKENS, EXPERTS), &args);
    graph_linear_experts(g, x, route, 1, &w, NULL, &y);
    out[0] = graph_route_rest(g, route, 2);
    out[1] = graph_combine(g, y, route);
}

static void same_pairs(struct tiny *t, value_id out[2]) {
    struct graph *g = &t->graph;
    value_id route = make_route(t, 7);
    out[0] = tiny_input(t, TOKENS, 3 * 20);
    out[1] = graph_join_pairs(g, graph_split_pairs(g, out[0], route), route);
}

/* A bias of logits moves them; scales multiply. */
static void same_route(struct tiny *t, value_id out[2]) {
    enum { EXPERTS = 8, USED = 3 };
    static const float three[EXPERTS] = {3, 3, 3, 3, 3, 3, 3, 3};
    struct graph *g = &t->graph;
    struct weight *bias = vector(t, EXPERTS), *scale = vector(t, EXPERTS);
    scale->data = three;
    value_id x = tiny_input(t, TOKENS, EXPERTS), moved = graph_affine(g, x, NULL, bias), part[2];
    struct route_args args = {.used = USED, .bias = bias, .bias_to_logits = true};
    part[0] = graph_slice(g, graph_route(g, x, &args), 1, 2 * USED, USED, USED);
    args = (struct route_args){.used = USED};
    part[1] = graph_slice(g, graph_route(g, moved, &args), 1, 2 * USED, USED, USED);
    value_id plain = graph_slice(g, graph_route(g, x, &args), 1, 2 * USED, 0, USED);
    args = (struct route_args){.used = USED, .scale = 2.5f, .expert_scale = scale};
    value_id scaled = graph_slice(g, graph_route(g, x, &args), 1, 2 * USED, 0, USED);
    out[0] = graph_concat(g, part[0], USED, scaled, USED, 1);
    plain = graph_scale(g, graph_scale(g, plain, 2.5f), 3);
    out[1] = graph_concat(g, part[1], USED, plain, USED, 1);
}

struct same_case { const char *name; same_fn *make; enum cpu_isa isa; };

static void run(struct check_row *row, const void *arg) {
    const struct same_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    value_id out[2];
    c->make(&t, out);
    uint32_t cols = t.graph.value[out[0]].cols;
    t.graph.logits = graph_concat(&t.graph, out[0], cols, out[1], cols, 1);
    float *got = check_output(row, 2 * (size_t)TOKENS * cols);
    struct tiny_run device;
    tiny_open(&device, &t, cpu_isa_name(c->isa), 3, (struct kv_types){KV_f32, KV_f32}, TOKENS);
    tiny_step(&device, (const uint32_t[TINY_SEQS]){TOKENS}, got);
    tiny_close(&device);
    for (uint32_t i = 0; i < TOKENS; i++)
        check_equal(row, got + 2 * (size_t)i * cols, got + (2 * (size_t)i + 1) * cols, cols);
    arena_free(&t.arena);
}

void check_same(struct check *check) {
    static const struct same_case cases[] = {
        {"concat", same_concat, 0},
        {"conv1d", same_conv1d, 0},
        {"embed_ngrams", same_embed_ngrams, 0},
        {"embed_position", same_embed_position, 0},
        {"experts_bias", same_experts_bias, 0},
        {"experts_rest", same_experts_rest, 0},
        {"narrow", same_narrow, 0},
        {"norm", same_norm, 0},
        {"pairs", same_pairs, 0},
        {"route", same_route, 0},
        {"route_rest", same_route_rest, 0},
        {"scale_position", same_scale_position, 0},
        {"select", same_select, 0},
    };
    CHECK_ISAS(check, isa)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct same_case c = cases[i];
            c.isa = isa;
            check_run(check, run, &c, "same_%s.%s", c.name, cpu_isa_name(isa));
        }
}
