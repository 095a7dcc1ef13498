/* SPDX-License-Identifier: Apache-2.0
 *
 * check_ops.c: each op of the list, as a graph on the cpu device with each ISA, against the ref
 * device. A new op does not link until it has a maker here. */
#include <math.h>

#include "models/blocks/alibi.h"
#include "tiny.h"

enum { TOKENS = 70, IDS = TOKENS + 64 };

typedef value_id make_fn(struct tiny *t);

static value_id make_act(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 50), sum = x;
    for (int act = 0; act < ACT_KINDS; act++)
        sum = graph_add(&t->graph, sum, graph_act(&t->graph, x, (enum act_kind)act));
    return sum;
}
static value_id make_affine(struct tiny *t) {
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], 1, 33);
    struct weight *b = tiny_weight(t, quant_list[QUANT_f16], 1, 33);
    value_id x = graph_affine(&t->graph, tiny_input(t, IDS, 33), w, NULL);
    return graph_affine(&t->graph, graph_affine(&t->graph, x, NULL, b), b, w);
}
static value_id make_clamp(struct tiny *t) {
    return graph_clamp(&t->graph, tiny_input(t, IDS, 33), -0.25f, 0.5f);
}
static value_id make_concat(struct tiny *t) {
    value_id a = tiny_input(t, IDS, 3 * 5), b = tiny_input(t, IDS, 3 * 4);
    value_id c = tiny_input(t, IDS, 7);
    a = graph_concat(&t->graph, a, 5, b, 4, 3);
    return graph_concat(&t->graph, c, 7, graph_concat(&t->graph, a, 9, c, 7, 3), 16, 3);
}
static value_id make_dot(struct tiny *t) {
    return graph_dot(&t->graph, tiny_input(t, IDS, 3 * 50), tiny_input(t, IDS, 3 * 50), 50);
}
/* A table in four parts; an end among the tokens. */
static value_id make_embed_ngrams(struct tiny *t) {
    static const uint64_t multiplier[] = {0x123456789abcd, 0x3bca987654321, 7},
                          size[] = {11, 7, 13, 9}, first[] = {0, 11, 18, 31};
    struct ngram_args args = {.order = 3, .heads = 2, .end = 20, .multiplier = multiplier,
                              .size = size, .first = first};
    struct weight *w = tiny_experts(t, quant_list[QUANT_q8_0], 4, 10, 32);
    return graph_embed_ngrams(&t->graph, w, &args);
}
static value_id make_embed_position(struct tiny *t) {
    struct weight *w = tiny_weight(t, quant_list[QUANT_q8_0], TOKENS + 3, 96);
    return graph_embed_position(&t->graph, w, 3);
}
static value_id make_glu_clamped(struct tiny *t) {
    struct glu_clamp clamp = {.alpha = 1.7f, .limit = 0.5f, .up_limit = 0.25f, .up_add = 1};
    return graph_glu_clamped(&t->graph, tiny_input(t, IDS, 50), tiny_input(t, IDS, 50), &clamp);
}
static value_id make_xielu(struct tiny *t) {
    return graph_xielu(&t->graph, tiny_input(t, IDS, 50), &(struct xielu){0.8f, 1.3f, 0.5f, -0.1f});
}
static value_id make_mul(struct tiny *t) {
    value_id x = graph_mul(&t->graph, tiny_input(t, IDS, 60), tiny_input(t, IDS, 60));
    return graph_mul(&t->graph, x, tiny_input(t, IDS, 3));
}
static value_id make_scale_position(struct tiny *t) {
    value_id x = graph_scale_position(&t->graph, tiny_input(t, IDS, 31), 0.5f, 1, 8);
    x = graph_log_position(&t->graph, x, 0.5f, 1, 8);
    return graph_power_position(&t->graph, x, 0.5f, 1, 8);
}
static value_id make_slice(struct tiny *t) {
    return graph_slice(&t->graph, tiny_input(t, IDS, 4 * 11), 4, 11, 2, 5);
}
static value_id make_tile(struct tiny *t) {
    return graph_tile(&t->graph, tiny_input(t, IDS, 3 * 10), 3, 10, 4);
}
static value_id make_add(struct tiny *t) {
    return graph_add(&t->graph, tiny_input(t, IDS, 48), tiny_input(t, IDS, 48));
}
/* More query heads of a KV head than a device takes at once; a wider K than V. */
static value_id make_latent(struct tiny *t) {
    enum { HEADS = 70 };
    struct attention_args args = {.heads = HEADS, .kv_heads = 1, .k_dim = 96, .v_dim = 64,
                                  .scale = 0.2f, .alibi = alibi_slopes(&t->arena, HEADS, 8),
                                  .sinks = tiny_weight(t, quant_list[QUANT_f32], 1, HEADS)};
    value_id q = tiny_input(t, IDS, HEADS * 96), k = tiny_input(t, IDS, 96);
    value_id y = graph_attention(&t->graph, q, k, tiny_input(t, IDS, 64), &args);
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], 6 * 64, HEADS * 64);
    return graph_linear1(&t->graph, y, w, NULL);
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
    static const struct { uint32_t heads, kv_heads, k_dim, v_dim; } wide[] = {
        {14, 2, 128, 128}, {4, 2, 192, 128}, {2, 1, 256, 256}, {9, 3, 96, 96}, {70, 1, 64, 32}};
    for (int i = 0; i < 5; i++) {
        uint32_t heads = wide[i].heads, kv_heads = wide[i].kv_heads, k_dim = wide[i].k_dim;
        struct attention_args args = {.heads = heads, .kv_heads = kv_heads, .k_dim = k_dim,
                                      .v_dim = wide[i].v_dim, .scale = 0.1f,
                                      .softcap = i == 2 ? 5.0f : 0};
        value_id q = tiny_input(t, IDS, heads * k_dim), k = tiny_input(t, IDS, kv_heads * k_dim);
        value_id v = tiny_input(t, IDS, kv_heads * args.v_dim);
        struct weight *w = tiny_weight(t, quant_list[QUANT_f32], 6 * 64, heads * args.v_dim);
        q = graph_attention(&t->graph, q, k, v, &args);
        sum = graph_add(&t->graph, sum, graph_linear1(&t->graph, q, w, NULL));
    }
    value_id q = tiny_input(t, IDS, 6 * 64), kv = tiny_input(t, IDS, 2 * 64);
    struct attention_args args = {.heads = 6, .kv_heads = 2, .k_dim = 64, .v_dim = 64,
                                  .window = 5, .scale = 0.3f, .has_beside = true, .every = 4,
                                  .beside = tiny_input(t, IDS, 2 * 64)};
    sum = graph_add(&t->graph, sum, graph_attention(&t->graph, q, kv, kv, &args));
    return graph_add(&t->graph, sum, make_latent(t));
}
/* Eight experts, of which a token has three; enough tokens for some to have many, or none. */
static value_id make_route(struct tiny *t) {
    struct route_args args = {.score = ROUTE_SIGMOID,
                              .used = 3,
                              .bias = tiny_weight(t, quant_list[QUANT_f32], 1, 8),
                              .groups = 4,
                              .groups_used = 2,
                              .group = ROUTE_GROUP_TOP2,
                              .normalize = true,
                              .normalize_eps = 0.125f,
                              .scale = 2.5f,
                              .expert_scale = tiny_weight(t, quant_list[QUANT_bf16], 1, 8)};
    value_id a = graph_route(&t->graph, tiny_input(t, IDS, 8), &args);
    args = (struct route_args){.used = 3, .bias = args.bias, .bias_to_logits = true, .always = 1};
    value_id b = graph_route(&t->graph, tiny_input(t, IDS, 8), &args);
    struct weight *chosen = tiny_weight(t, quant_list[QUANT_f32], IDS, 3);
    float *expert = check_input(t->row, (size_t)IDS * 3, 0, 7.99f);
    for (int i = 0; i < IDS * 3; i++) expert[i] = floorf(expert[i]);
    chosen->data = expert;
    args = (struct route_args){.score = ROUTE_SQRT_SOFTPLUS, .used = 3, .normalize = true,
                               .has_chosen = true, .chosen = graph_embed(&t->graph, chosen, 1)};
    a = graph_concat(&t->graph, a, 6, graph_route(&t->graph, tiny_input(t, IDS, 8), &args), 6, 1);
    return graph_concat(&t->graph, a, 12, b, 6, 1);
}
/* Experts 6 and 7 of 8 have no matrix: they multiply the token's own row. */
static value_id make_route_rest(struct tiny *t) {
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], 6, 32, 32);
    value_id x = tiny_input(t, IDS, 32), y;
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 8), &(struct route_args){.used = 3});
    graph_linear_experts(&t->graph, x, route, 1, &w, NULL, &y);
    value_id rest = graph_mul(&t->graph, x, graph_route_rest(&t->graph, route, 6));
    return graph_add(&t->graph, rest, graph_combine(&t->graph, y, route));
}
static value_id make_linear_experts(struct tiny *t) {
    struct weight *w[3] = {tiny_experts(t, quant_list[QUANT_f16], 8, 64, 96),
                           tiny_experts(t, quant_list[QUANT_q8_0], 8, 64, 96),
                           tiny_experts(t, quant_list[QUANT_q8_0], 8, 64, 64)};
    struct weight *bias[2] = {tiny_experts(t, quant_list[QUANT_f32], 8, 1, 64),
                              tiny_experts(t, quant_list[QUANT_f16], 8, 1, 64)};
    value_id x = tiny_input(t, IDS, 96), out[2], down;
    struct route_args args = {.score = ROUTE_SOFTMAX_CHOSEN, .used = 3};
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 8), &args);
    graph_linear_experts(&t->graph, x, route, 2, w, bias, out);
    graph_linear_experts(&t->graph, graph_add(&t->graph, out[0], out[1]), route, 1, w + 2, NULL,
                         &down);
    return graph_combine(&t->graph, down, route);
}
static value_id heads_of(struct tiny *t, value_id x, enum quant_index quant, uint32_t heads,
                         uint32_t rows, uint32_t cols) {
    struct weight *w = tiny_experts(t, quant_list[quant], heads, rows, cols);
    w->heads = true;
    return graph_linear_heads(&t->graph, x, w);
}
/* Few heads of many rows, many of few. */
static value_id make_linear_heads(struct tiny *t) {
    value_id x = heads_of(t, tiny_input(t, IDS, 5 * 32), QUANT_f16, 5, 96, 32);
    x = heads_of(t, x, QUANT_q8_0, 5, 160, 96);
    return heads_of(t, x, QUANT_f32, 40, 7, 20);
}
/* Experts whose input is weighted, and whose outputs stay apart. */
static value_id make_join_pairs(struct tiny *t) {
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], 5, 33, 16);
    struct route_args args = {.used = 3};
    value_id x = tiny_input(t, IDS, 16), y;
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 5), &args);
    value_id weight = graph_slice(&t->graph, route, 1, 6, 0, 3);
    x = graph_mul(&t->graph, graph_tile(&t->graph, x, 1, 16, 3), weight);
    x = graph_split_pairs(&t->graph, x, route);
    graph_linear_experts(&t->graph, x, route, 1, &w, NULL, &y);
    return graph_join_pairs(&t->graph, y, route);
}
static value_id make_split_pairs(struct tiny *t) {
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 7), &(struct route_args){.used = 4});
    value_id x = graph_split_pairs(&t->graph, tiny_input(t, IDS, 4 * 20), route);
    return graph_combine(&t->graph, x, route);
}
static value_id make_combine(struct tiny *t) {
    struct weight *w = tiny_experts(t, quant_list[QUANT_f32], 5, 33, 16);
    struct route_args args = {.used = 2};
    value_id route = graph_route(&t->graph, tiny_input(t, IDS, 5), &args), out;
    graph_linear_experts(&t->graph, tiny_input(t, IDS, 16), route, 1, &w, NULL, &out);
    return graph_combine(&t->graph, out, route);
}
static value_id make_conv1d(struct tiny *t) {
    struct weight *w = tiny_weight(t, quant_list[QUANT_f16], 70, 4),
                  *short_w = tiny_weight(t, quant_list[QUANT_f32], 70, 2);
    value_id x = graph_conv1d(&t->graph, tiny_input(t, IDS, 70), w,
                              tiny_weight(t, quant_list[QUANT_f32], 1, 70), 4);
    x = graph_conv1d(&t->graph, x, short_w, NULL, 2);
    return graph_conv1d_apart(&t->graph, x, w, NULL, 4, 3);
}
/* Values in (low, high) in place of (-1, 1). */
static value_id input_between(struct tiny *t, uint32_t cols, float low, float high) {
    struct weight *w = tiny_weight(t, quant_list[QUANT_f32], IDS, cols);
    w->data = check_input(t->row, (size_t)IDS * cols, low, high);
    return graph_embed(&t->graph, w, 1);
}
/* As the families have it: one decay a head, one for each element of k, a fixed one; plain sums. */
static value_id make_delta(struct tiny *t) {
    static const float fixed[6] = {0.5f, 0.9f, 0.99f, 1, 0.2f, 0.7f};
    enum { HEADS = 6, K_HEADS = 2, K = 24, V = 40 };
    value_id sum = NO_VALUE;
    for (int kind = 0; kind < 4; kind++) {
        value_id k = tiny_input(t, IDS, K_HEADS * K);
        struct delta_args args = {
            .q = tiny_input(t, IDS, K_HEADS * K),
            .k = graph_norm(&t->graph, k, NULL, NULL, NORM_RMS, 1e-6f, K),
            .v = tiny_input(t, IDS, HEADS * V),
            .decay = kind < 3 ? input_between(t, HEADS * (kind == 1 ? K : 1), 0.6f, 1) : NO_VALUE,
            .beta = kind < 3 ? input_between(t, HEADS, 0, 1) : NO_VALUE,
            .heads = HEADS, .k_heads = K_HEADS, .k_dim = K, .v_dim = V,
            .delta = kind < 2, .k_tiled = kind == 1, .fixed_decay = fixed, .scale = 0.2f,
            .skip = kind == 2 ? tiny_weight(t, quant_list[QUANT_f32], 1, HEADS) : NULL};
        if (kind < 2) args.k = graph_scale(&t->graph, args.k, 0.2f); /* of about length 1 */
        value_id y = graph_delta(&t->graph, &args);
        sum = sum == NO_VALUE ? y : graph_add(&t->graph, sum, y);
    }
    return sum;
}
static value_id make_mlstm(struct tiny *t) {
    enum { HEADS = 3, K = 24, V = 40 };
    struct mlstm_args args = {.q = tiny_input(t, IDS, HEADS * K),
                              .k = tiny_input(t, IDS, HEADS * K),
                              .v = tiny_input(t, IDS, HEADS * V),
                              .gate = input_between(t, HEADS, -4, 1),
                              .log_decay = input_between(t, HEADS, -9, 0),
                              .heads = HEADS, .k_dim = K, .v_dim = V, .scale = 0.2f, .eps = 1e-6f};
    return graph_mlstm(&t->graph, &args);
}
static value_id make_rglru(struct tiny *t) {
    return graph_rglru(&t->graph, tiny_input(t, IDS, 70), input_between(t, 70, -3, -1e-3f));
}
static value_id make_scan(struct tiny *t) {
    enum { COLS = 150, N = 5 };
    value_id sum = NO_VALUE;
    for (uint32_t heads = 1; heads <= 2; heads++) {
        struct weight *a = tiny_weight(t, quant_list[QUANT_f32], COLS, N);
        a->data = check_input(t->row, (size_t)COLS * N, -4, -0.1f);
        struct scan_args args = {.x = tiny_input(t, IDS, COLS),
                                 .dt = input_between(t, COLS, 0, 1),
                                 .b = tiny_input(t, IDS, heads * N),
                                 .c = tiny_input(t, IDS, heads * N),
                                 .a = a,
                                 .d = heads == 1 ? tiny_weight(t, quant_list[QUANT_f32], 1, COLS)
                                                 : NULL,
                                 .heads = heads};
        value_id y = graph_scan(&t->graph, &args);
        sum = sum == NO_VALUE ? y : graph_add(&t->graph, sum, y);
    }
    return sum;
}
static value_id make_token_shift(struct tiny *t) {
    return graph_token_shift(&t->graph, tiny_input(t, IDS, 33));
}
static value_id make_wkv4(struct tiny *t) {
    value_id k = input_between(t, 70, -9, 9), v = tiny_input(t, IDS, 70);
    return graph_wkv4(&t->graph, k, v, tiny_weight(t, quant_list[QUANT_f32], 1, 70),
                      tiny_weight(t, quant_list[QUANT_bf16], 1, 70));
}
/* Blocks of five and, overlapping, of three tokens. */
static value_id make_compress(struct tiny *t) {
    value_id kv = tiny_input(t, IDS, 70), gate = input_between(t, 70, -9, 9);
    value_id y = graph_compress(&t->graph, kv, gate, tiny_weight(t, quant_list[QUANT_f32], 5, 70),
                                5, false);
    value_id z = graph_compress(&t->graph, kv, gate, tiny_weight(t, quant_list[QUANT_f16], 3, 70),
                                3, true);
    return graph_concat(&t->graph, y, 70, z, 35, 1);
}
static value_id make_mix(struct tiny *t) {
    return graph_mix(&t->graph, tiny_input(t, IDS, 3 * 33), tiny_input(t, IDS, 3 * 2), 33);
}
static value_id make_sinkhorn(struct tiny *t) {
    return graph_sinkhorn(&t->graph, input_between(t, 25, -4, 4), 5, 20, 1e-6f);
}
static value_id make_embed(struct tiny *t) {
    return graph_embed(&t->graph, tiny_weight(t, quant_list[QUANT_q8_0], IDS, 96), 3.5f);
}
static value_id make_gather_rows(struct tiny *t) {
    return graph_gather_rows(&t->graph, tiny_input(t, IDS, 33));
}
/* Rows of sequences, and what may follow. */
static value_id make_pool(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 33);
    value_id y = graph_pool(&t->graph, x, (enum pool_kind)0);
    for (uint32_t k = 1; k < POOL_KINDS; k++)
        y = graph_concat(&t->graph, y, 33 * k, graph_pool(&t->graph, x, (enum pool_kind)k), 33, 1);
    return graph_linear1(&t->graph, y, tiny_weight(t, quant_list[QUANT_f32], 20, 33 * POOL_KINDS),
                         NULL);
}
static value_id make_glu(struct tiny *t) {
    value_id x = tiny_input(t, IDS, 50), up = tiny_input(t, IDS, 50);
    for (int act = 0; act < ACT_KINDS; act++)
        up = graph_add(&t->graph, up, graph_glu(&t->graph, x, up, (enum act_kind)act));
    return graph_glu(&t->graph, tiny_input(t, IDS, 2), up, ACT_SIGMOID);
}
/* Whole numbers, whose sums are exact and often equal: a choice is no matter of rounding. */
static value_id make_index_select(struct tiny *t) {
    value_id in[3];
    const uint32_t cols[3] = {5 * 32, 5, 32};
    for (int i = 0; i < 3; i++) {
        float *x = check_input(t->row, IDS * cols[i], -3, 3);
        for (uint32_t k = 0; k < IDS * cols[i]; k++) x[k] = rintf(x[k]);
        struct weight *w = tiny_weight(t, quant_list[QUANT_f32], IDS, cols[i]);
        w->data = x;
        in[i] = graph_embed(&t->graph, w, 1);
    }
    value_id y = graph_index_select(&t->graph, in[0], in[1], in[2], 30, 0);
    value_id z = graph_block_select(&t->graph, in[0], in[2], 8, 4, 1);
    y = graph_concat(&t->graph, y, 30, z, 5 * 8 * 4, 1);
    z = graph_index_select(&t->graph, in[0], in[1], in[2], 4, 3);
    y = graph_concat(&t->graph, y, 30 + 5 * 8 * 4, z, 4, 1);
    z = graph_whole_select(&t->graph, in[0], in[2], 4, 5);
    y = graph_concat(&t->graph, y, 30 + 5 * 8 * 4 + 4, z, 6 * 4 - 1, 1);
    return graph_softcap(&t->graph, y, TOKENS); /* of what is not there, too, a number */
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
    struct weight *wide = tiny_weight(t, quant_list[QUANT_f32], 1, 60);
    value_id x = graph_norm(&t->graph, tiny_input(t, IDS, 60), w, NULL, NORM_RMS, 1e-6f, 20);
    x = graph_norm(&t->graph, x, w, b, NORM_LAYER, 1e-5f, 20);
    x = graph_norm(&t->graph, x, wide, b, NORM_L2, 1e-6f, 20);
    return graph_norm(&t->graph, x, w, wide, NORM_L2_SUM, 0.5f, 20);
}
static value_id make_rope_table(struct tiny *t) {
    float *freq = arena_array(&t->arena, 24, sizeof *freq);
    for (int i = 0; i < 24; i++) freq[i] = powf(10000, -(float)i / 24);
    struct rope_table_args args = {.freq = freq, .half = 24, .magnitude = 1.1f};
    value_id plain = graph_rope_table(&t->graph, &args);
    args.every = 7;
    plain = graph_add(&t->graph, plain, graph_rope_table(&t->graph, &args));
    args.every = 0;
    args.back = 3;
    return graph_add(&t->graph, plain, graph_rope_table(&t->graph, &args));
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
static value_id make_sparsify(struct tiny *t) {
    return graph_sparsify(&t->graph, tiny_input(t, IDS, 31), 0.5f);
}
static value_id make_match_rms(struct tiny *t) {
    return graph_match_rms(&t->graph, tiny_input(t, IDS, 31), tiny_input(t, IDS, 31), 1e-5f);
}
static value_id make_round_act(struct tiny *t) {
    value_id step, codes = graph_round_act(&t->graph, tiny_input(t, IDS, 31), &step);
    return graph_mul(&t->graph, codes, step);
}

static make_fn *const makers[OP_COUNT] = {
#define OP(name, text) [OP_##name] = make_##name,
#include "graph/ops.def"
#undef OP
};

/* A node of three weights gives the bits of three nodes of one; biases stay with their weights. */
static void run_apart(struct check_row *row, const void *arg) {
    enum { ROWS = 40, COLS = 96, N = TOKENS * ROWS };
    const char *on = arg;
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
            tiny_open(&device, &t, on, 3, kv, TOKENS);
            got[together] = check_output(row, N);
            tiny_step(&device, (const uint32_t[TINY_SEQS]){TOKENS}, got[together]);
            tiny_close(&device);
        }
        check_equal(row, got[1], got[0], N);
    }
    arena_free(&t.arena);
}

/* on: see tiny_open() */
struct ops_case { enum op op; const char *on; enum kv_type kv; };

/* A quantized K takes the query in int8, which ref does not. */
static double bound(const struct ops_case *c) {
    if (c->op == OP_linear || c->op == OP_linear_experts || c->op == OP_linear_heads) return 1e-4;
    return kv_quant(c->kv)->block > 1 ? 2e-4 : 1e-11;
}

static void run(struct check_row *row, const void *arg) {
    const struct ops_case *c = arg;
    struct tiny t;
    tiny_init(&t, row);
    t.graph.logits = makers[c->op](&t);
    const struct value *out = &t.graph.value[t.graph.logits];
    size_t n = value_rows(out, TOKENS + 3, TOKENS + 3, 2) * out->cols;
    float *got = check_output(row, n), *want = check_output(row, n);
    const uint32_t count[TINY_SEQS] = {TOKENS, 0, 3, 0};
    for (int side = 0; side < 2; side++) {
        struct tiny_run device;
        struct kv_types kv = {c->kv, c->kv};
        tiny_open(&device, &t, side == 0 ? c->on : NULL, 3, kv, TOKENS + 3);
        tiny_step(&device, count, side == 0 ? got : want);
        tiny_close(&device);
    }
    check_nmse(row, got, want, n, bound(c));
    arena_free(&t.arena);
}

static void run_all(struct check *check, const char *on) {
    check_run(check, run_apart, on, "linear.%s.apart", on);
    for (int op = 0; op < OP_COUNT; op++)
        for (int kv = 0; kv < (op == OP_attention ? KV_TYPES : 1); kv++) {
            struct ops_case c = {(enum op)op, on, (enum kv_type)kv};
            check_run(check, run, &c, "%s.%s%s%s", op_name(c.op), on,
                      op == OP_attention ? "." : "", op == OP_attention ? kv_name(c.kv) : "");
        }
}

void check_ops(struct check *check) {
    CHECK_ISAS(check, isa) run_all(check, cpu_isa_name(isa));
    if (check_device(check)) run_all(check, check_device(check));
}
