/* SPDX-License-Identifier: Apache-2.0
 * zaya.c: ZayaForCausalLM (Zyphra ZAYA1): compressed convolutional attention (arXiv 2510.04476):
 * queries and keys pass a convolution of each column and one of each head, beside what they were;
 * half of the values are of the token before. A mixture whose router sees the one of the layer
 * before and may choose an expert that does nothing. Scales and biases on the stream's sums. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("conv", NULL, "cca_time0", OPTIONAL, 2, 1, 64),
    WHOLE("attention_bias", NULL, "attention_bias", OPTIONAL, 0, 0, 1),
    WHOLE("head_bias", NULL, "lm_head_bias", OPTIONAL, 0, 0, 1),
    WHOLE("router", NULL, "router_hidden_size", OPTIONAL, 256, 1, 1 << 16),
    {0},
};

#define CCA(name) "{m}layers.{i}.self_attn.qkv_proj." name
#define GATE(name) "{m}layers.{i}.mlp.gate." name
#define QK "heads*k_dim+kv_heads*k_dim"
#define SUM(ours, theirs)                                                                        \
    VECTOR("blk.{i}." ours "_scale", "{m}layers.{i}." theirs ".hidden_states_scale", "width",    \
           REQUIRED),                                                                            \
    VECTOR("blk.{i}." ours "_bias", "{m}layers.{i}." theirs ".hidden_states_bias", "width",      \
           REQUIRED),                                                                            \
    VECTOR("blk.{i}." ours "_old_scale", "{m}layers.{i}." theirs ".residual_scale", "width",     \
           REQUIRED),                                                                            \
    VECTOR("blk.{i}." ours "_old_bias", "{m}layers.{i}." theirs ".residual_bias", "width", REQUIRED)

static const struct tensor tensors[] = {
    VECTOR("output.bias", "lm_head.bias", "head_bias*vocab", REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", CCA("q_proj.bias"), "attention_bias*heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", CCA("k_proj.bias"), "attention_bias*kv_heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", CCA("v_proj_current.bias"),
           "attention_bias*kv_heads*v_dim/2", REQUIRED),
    VECTOR("blk.{i}.attn_v_old.bias", CCA("v_proj_delayed.bias"),
           "attention_bias*kv_heads*v_dim/2", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", "{m}layers.{i}.self_attn.o_proj.bias",
           "attention_bias*width", REQUIRED),
    VECTOR("embd_scale", "{m}input_hidden_states_scale", "width", REQUIRED),
    VECTOR("embd_bias", "{m}input_hidden_states_bias", "width", REQUIRED),
    SUM("attn_sum", "post_attention_residual_scale"),
    SUM("ffn_sum", "post_mlp_residual_scale"),
    MATRIX("blk.{i}.attn_q.weight", CCA("q_proj.weight"), "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", CCA("k_proj.weight"), "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", CCA("v_proj_current.weight"), "kv_heads*v_dim/2", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v_old.weight", CCA("v_proj_delayed.weight"), "kv_heads*v_dim/2", "width",
           REQUIRED),
    MATRIX("blk.{i}.conv.weight", CCA("conv_qk_depthwise.weight"), QK, "conv", REQUIRED),
    VECTOR("blk.{i}.conv.bias", CCA("conv_qk_depthwise.bias"), QK, REQUIRED),
    MATRIX("blk.{i}.conv_heads.weight", CCA("conv_qk_grouped.weight"), "k_dim", "2*k_dim",
           REQUIRED, .from_hf = "heads(k_dim,0,heads+kv_heads)"),
    VECTOR("blk.{i}.conv_heads.bias", CCA("conv_qk_grouped.bias"), QK, REQUIRED),
    VECTOR("blk.{i}.attn_k_scale", "{m}layers.{i}.self_attn.qk_norm.temp", "kv_heads*k_dim",
           REQUIRED, .from_hf = "repeat(k_dim)"),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.router_in.weight", GATE("down_proj.weight"), "router", "width", REQUIRED),
    VECTOR("blk.{i}.router_in.bias", GATE("down_proj.bias"), "router", REQUIRED),
    VECTOR("blk.{i}.router_old_scale", GATE("router_states_scale"), "router", OPTIONAL,
           .needed = "is_later"),
    VECTOR("blk.{i}.router_norm.weight", GATE("router_mlp.norm.weight"), "router", REQUIRED),
    MATRIX("blk.{i}.router_1.weight", GATE("router_mlp.fc1.weight"), "router", "router", REQUIRED),
    VECTOR("blk.{i}.router_1.bias", GATE("router_mlp.fc1.bias"), "router", REQUIRED),
    MATRIX("blk.{i}.router_2.weight", GATE("router_mlp.fc2.weight"), "router", "router", REQUIRED),
    VECTOR("blk.{i}.router_2.bias", GATE("router_mlp.fc2.bias"), "router", REQUIRED),
    MATRIX("blk.{i}.router_out.weight", GATE("router_mlp.out_proj.weight"), "experts+1", "router",
           REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", GATE("balancing_biases"), "experts+1", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", "{m}layers.{i}.mlp.experts.gate_up_proj", "expert_ffn",
           "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.mlp.experts.down_proj", "width",
           "expert_ffn", REQUIRED, .from_hf = "experts"),
    {0},
};

static ob_status read_rope(struct build *b, const char *hf, struct rope *rope, ob_error *error) {
    const struct rope_source from = {.hf = hf, .base = 10000, .scaled = true};
    return rope_read(b, &from, rope, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, "cca_time1", 2, 2, "a convolution of each head over more tokens than two"}, {0}};
    static const struct route_args router = {.score = ROUTE_SOFTMAX};
    struct hparams *hp = b->hp;
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s == OB_OK) s = read_rope(b, "rope_parameters.hybrid", &hp->rope, error);
    if (s == OB_OK) s = read_rope(b, "rope_parameters.hybrid_sliding", &hp->rope_window, error);
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++)
        hp->window[i] = decoder_type_is(b, i, "hybrid_sliding") ? hp->window_size : 0;
    if (s == OB_OK && hp->expert_count >= ROUTE_EXPERTS_MAX) /* one more has no matrix */
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "num_experts", error, "%u, at most %d",
                            hp->expert_count, ROUTE_EXPERTS_MAX - 1);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

/* (x + bias) * scale */
static value_id shifted(struct build *b, value_id x, struct weight *scale, struct weight *bias) {
    return graph_affine(b->g, graph_affine(b->g, x, NULL, bias), scale, NULL);
}

/* Columns of q and k: a convolution of each, then of each head; before a sequence the second sees
 * what the first makes of zeros, its bias. */
static value_id convolve(struct build *b, value_id x, uint32_t cols) {
    struct graph *g = b->g;
    struct weight *bias = build_weight(b, "conv.bias");
    x = graph_conv1d(g, x, build_weight(b, "conv.weight"), NULL, build_whole(b, "conv"));
    value_id old = graph_affine(g, graph_token_shift(g, x), NULL, bias);
    x = graph_concat(g, old, 1, graph_affine(g, x, NULL, bias), 1, cols);
    x = graph_linear_heads(g, x, build_weight(b, "conv_heads.weight"));
    return graph_affine(g, x, NULL, build_weight(b, "conv_heads.bias"));
}

static value_id turn(struct build *b, value_id x, uint32_t heads, struct weight *scale) {
    uint32_t dim = b->hp->k_dim;
    x = graph_norm(b->g, x, NULL, NULL, NORM_L2, 0x1p-23f, dim);
    x = graph_scale(b->g, x, sqrtf((float)dim));
    if (scale) x = graph_affine(b->g, x, scale, NULL);
    return graph_rope(b->g, x, block_rope_table(b, b->hp->window[b->layer] > 0), heads, dim, false);
}

static value_id attend(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t i = b->layer, heads = hp->heads[i], kv_heads = hp->kv_heads[i], dim = hp->k_dim,
             group = heads / kv_heads, q_cols = heads * dim, k_cols = kv_heads * dim;
    struct weight *w[4] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight"), build_weight(b, "attn_v_old.weight")};
    value_id out[4];
    struct weight *bias[4] = {build_weight(b, "attn_q.bias"), build_weight(b, "attn_k.bias"),
                              build_weight(b, "attn_v.bias"), NULL};
    graph_linear(g, x, 4, w, bias, out);
    value_id both = graph_concat(g, out[0], q_cols, out[1], k_cols, 1);
    both = convolve(b, both, q_cols + k_cols);
    value_id q = graph_add(g, out[0], graph_tile(g, out[1], kv_heads, dim, group));
    q = graph_scale(g, q, 0.5f);
    value_id k = graph_slice(g, q, kv_heads, group * dim, 0, dim); /* the mean of a group's q */
    for (uint32_t j = 1; j < group; j++)
        k = graph_add(g, k, graph_slice(g, q, kv_heads, group * dim, j * dim, dim));
    k = graph_scale(g, k, 1.0f / (float)group);
    q = graph_add(g, graph_slice(g, both, 1, q_cols + k_cols, 0, q_cols), q);
    k = graph_add(g, graph_slice(g, both, 1, q_cols + k_cols, q_cols, k_cols), k);
    value_id old = graph_token_shift(g, out[3]);
    if (build_weight(b, "attn_v_old.bias")) /* the token before the first is zeros */
        old = graph_affine(g, old, NULL, build_weight(b, "attn_v_old.bias"));
    value_id v = graph_concat(g, out[2], k_cols / 2, old, k_cols / 2, 1);
    q = turn(b, q, heads, NULL);
    k = turn(b, k, kv_heads, build_weight(b, "attn_k_scale"));
    value_id mixed = graph_attention(g, q, k, v,
                                     &(struct attention_args){.heads = heads,
                                                              .kv_heads = kv_heads,
                                                              .k_dim = dim,
                                                              .v_dim = dim,
                                                              .window = hp->window[i],
                                                              .scale = hp->attention_scale});
    return block_linear(b, mixed, "attn_output");
}

/* The router's state goes on to the next layer's. */
static value_id mixture(struct build *b, value_id x, value_id *state) {
    struct graph *g = b->g;
    struct weight *old = build_weight(b, "router_old_scale"),
                  *w[2] = {build_weight(b, "ffn_up_exps.weight"),
                           build_weight(b, "ffn_gate_exps.weight")},
                  *down = build_weight(b, "ffn_down_exps.weight");
    value_id h = block_linear(b, x, "router_in"), out[2];
    if (old && *state != NO_VALUE) h = graph_add(g, h, graph_affine(g, *state, old, NULL));
    *state = h;
    h = block_norm_named(b, h, "router_norm");
    h = graph_act(g, block_linear(b, h, "router_1"), ACT_GELU_ERF);
    h = graph_act(g, block_linear(b, h, "router_2"), ACT_GELU_ERF);
    struct route_args args = b->hp->route;
    args.bias = build_weight(b, "exp_probs_b.bias");
    value_id route = graph_route(g, block_linear(b, h, "router_out"), &args);
    graph_linear_experts(g, x, route, 2, w, NULL, out);
    h = graph_glu(g, out[1], out[0], b->hp->act);
    graph_linear_experts(g, h, route, 1, &down, NULL, out);
    return graph_combine(g, out[0], route);
}

static value_id body(struct build *b, value_id x) {
    value_id state = NO_VALUE;
    x = shifted(b, x, build_global(b, "embd_scale"), build_global(b, "embd_bias"));
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        value_id h = attend(b, block_norm_named(b, x, "attn_norm"));
        h = shifted(b, h, build_weight(b, "attn_sum_scale"), build_weight(b, "attn_sum_bias"));
        x = graph_add(b->g, h, shifted(b, x, build_weight(b, "attn_sum_old_scale"),
                                       build_weight(b, "attn_sum_old_bias")));
        h = mixture(b, block_norm_named(b, x, "ffn_norm"), &state);
        h = shifted(b, h, build_weight(b, "ffn_sum_scale"), build_weight(b, "ffn_sum_bias"));
        x = graph_add(b->g, h, shifted(b, x, build_weight(b, "ffn_sum_old_scale"),
                                       build_weight(b, "ffn_sum_old_bias")));
    }
    return x;
}

const struct recipe model_zaya = {
    .family = "zaya",
    .model_type = "zaya",
    .hf_class = "ZayaForCausalLM",
    .foreign = "norm_topk_prob|routed_scaling_factor",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, tensors),
    .derive = derive,
    .body = body,
};
