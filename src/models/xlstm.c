/* SPDX-License-Identifier: Apache-2.0
 * xlstm.c: xLSTMForCausalLM (xLSTM 7B, arXiv 2503.13427): a matrix memory a head with exponential
 * gates, whose logits are soft-capped, then a gated MLP. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

static const struct key keys[] = {
    WHOLE("lstm_heads", NULL, "num_heads", REQUIRED, 0, 1, 1024),
    REAL("qk_factor", NULL, "qk_dim_factor", OPTIONAL, 0.5, 1e-3, 1e3),
    REAL("v_factor", NULL, "v_dim_factor", OPTIONAL, 1, 1e-3, 1e3),
    REAL("ffn_factor", NULL, "ffn_proj_factor", OPTIONAL, 2.667, 1e-3, 1e3),
    WHOLE("ffn_multiple", NULL, "ffn_round_up_to_multiple_of", OPTIONAL, 64, 1, 1 << 20),
    REAL("gate_cap", NULL, "gate_soft_cap", OPTIONAL, 15, 0, 0),
    REAL("lstm_eps", NULL, "eps", OPTIONAL, 1e-6, 0, 1),
    {NULL, "output_logit_soft_cap", KEY_F32, offsetof(struct hparams, logit_softcap), OPTIONAL, 30,
     0, 0, NULL},
    {0},
};

#define AT(name) "{m}blocks.{i}." name ".weight"
#define LSTM(name) AT("mlstm_layer." name)

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}out_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", AT("norm_mlstm"), "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", AT("norm_ffn"), "width", REQUIRED),
    MATRIX("blk.{i}.lstm_q.weight", LSTM("q"), "qk_wide", "width", REQUIRED),
    MATRIX("blk.{i}.lstm_k.weight", LSTM("k"), "qk_wide", "width", REQUIRED),
    MATRIX("blk.{i}.lstm_v.weight", LSTM("v"), "v_wide", "width", REQUIRED),
    MATRIX("blk.{i}.lstm_o.weight", LSTM("ogate_preact"), "v_wide", "width", REQUIRED),
    MATRIX("blk.{i}.lstm_i.weight", LSTM("igate_preact"), "lstm_heads", "width", REQUIRED),
    VECTOR("blk.{i}.lstm_i.bias", "{m}blocks.{i}.mlstm_layer.igate_preact.bias", "lstm_heads",
           REQUIRED),
    MATRIX("blk.{i}.lstm_f.weight", LSTM("fgate_preact"), "lstm_heads", "width", REQUIRED),
    VECTOR("blk.{i}.lstm_f.bias", "{m}blocks.{i}.mlstm_layer.fgate_preact.bias", "lstm_heads",
           REQUIRED),
    VECTOR("blk.{i}.lstm_norm.weight", LSTM("multihead_norm"), "v_wide", REQUIRED),
    MATRIX("blk.{i}.lstm_out.weight", LSTM("out_proj"), "width", "v_wide", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", AT("ffn.proj_up_gate"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", AT("ffn.proj_up"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", AT("ffn.proj_down"), "width", "ffn", REQUIRED),
    {0},
};

static uint32_t round_up(double x, uint32_t multiple) {
    return (uint32_t)(floor((x + multiple - 1) / multiple) * multiple);
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t heads = build_whole(b, "lstm_heads");
    double qk = floor(hp->width * build_number(b, "qk_factor")),
           v = floor(hp->width * build_number(b, "v_factor"));
    const struct plain blocks[] = {
        {NULL, "num_blocks", hp->layers, hp->layers, "another number than num_hidden_layers"}, {0}};
    ob_status s = build_plain(b, blocks, error);
    if (s == OB_OK) s = recurrent_sizes(b, error);
    if (s == OB_OK && ((uint32_t)qk % heads || (uint32_t)v % heads || qk < heads || v < heads))
        return build_refuse(b, OB_ERR_FORMAT, "num_heads", "num_heads", error,
                            "%u heads do not divide %.0f and %.0f features", heads, qk, v);
    if (s == OB_OK) s = build_set(b, "qk_wide", qk, error);
    if (s == OB_OK) s = build_set(b, "v_wide", v, error);
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++)
        hp->ffn[i] = round_up(hp->width * build_number(b, "ffn_factor"),
                              build_whole(b, "ffn_multiple"));
    return s;
}

static value_id capped(struct build *b, value_id x) {
    float cap = (float)build_number(b, "gate_cap");
    return cap > 0 ? graph_softcap(b->g, x, cap) : x;
}

static value_id lstm(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t heads = build_whole(b, "lstm_heads"), qk = build_whole(b, "qk_wide") / heads,
             v = build_whole(b, "v_wide") / heads;
    struct weight *w[4] = {build_weight(b, "lstm_q.weight"), build_weight(b, "lstm_k.weight"),
                           build_weight(b, "lstm_v.weight"), build_weight(b, "lstm_o.weight")};
    struct weight *gate[2] = {build_weight(b, "lstm_i.weight"), build_weight(b, "lstm_f.weight")},
                  *bias[2] = {build_weight(b, "lstm_i.bias"), build_weight(b, "lstm_f.bias")};
    value_id out[4], gates[2];
    graph_linear(g, x, 4, w, NULL, out);
    graph_linear(g, x, 2, gate, bias, gates);
    value_id forget = graph_act(g, graph_scale(g, capped(b, gates[1]), -1), ACT_SOFTPLUS);
    value_id y = graph_mlstm(g, &(struct mlstm_args){.q = out[0],
                                                     .k = out[1],
                                                     .v = out[2],
                                                     .gate = capped(b, gates[0]),
                                                     .log_decay = graph_scale(g, forget, -1),
                                                     .heads = heads,
                                                     .k_dim = qk,
                                                     .v_dim = v,
                                                     .scale = 1 / sqrtf((float)qk),
                                                     .eps = (float)build_number(b, "lstm_eps")});
    y = graph_norm(g, y, build_weight(b, "lstm_norm.weight"), NULL, NORM_LAYER, b->hp->eps, v);
    return block_linear(b, graph_glu(g, out[3], y, ACT_SIGMOID), "lstm_out");
}

static value_id layer(struct build *b, value_id x) {
    x = graph_add(b->g, x, lstm(b, block_norm_named(b, x, "attn_norm")));
    value_id h = decoder_mlp_block(b, block_norm_named(b, x, "ffn_norm"), NULL);
    return graph_add(b->g, x, h);
}

const struct recipe model_xlstm = {
    .family = "xlstm",
    .model_type = "xlstm",
    .hf_class = "xLSTMForCausalLM",
    .act_key = "",
    .roots = "backbone.",
    KEYS(recurrent_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = layer,
};
