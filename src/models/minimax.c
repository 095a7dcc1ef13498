/* SPDX-License-Identifier: Apache-2.0
 * minimax.c: MiniMaxForCausalLM (MiniMax-Text-01): lightning attention, which is linear with a
 * fixed decay a head (arXiv 2401.04658), full attention in every eighth layer, a mixture in all.
 * What a sub-layer is added to is its normed input, both times a constant. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

/* In GGUF one factor of what is added to, and none of what is added. */
#define ALPHA "{arch}.residual_scale"
static const struct key keys[] = {
    REAL("linear_alpha", ALPHA, "linear_attn_alpha_factor", OPTIONAL, 1, 0, 0),
    REAL("linear_beta", NULL, "linear_attn_beta_factor", OPTIONAL, 1, 0, 0),
    REAL("full_alpha", ALPHA, "full_attn_alpha_factor", OPTIONAL, 1, 0, 0),
    REAL("full_beta", NULL, "full_attn_beta_factor", OPTIONAL, 1, 0, 0),
    REAL("mlp_alpha", ALPHA, "mlp_alpha_factor", OPTIONAL, 1, 0, 0),
    REAL("mlp_beta", NULL, "mlp_beta_factor", OPTIONAL, 1, 0, 0),
    {0},
};

#define AT(name) "{m}layers.{i}.self_attn." name
#define EXPERT(name) "{m}layers.{i}.block_sparse_moe.experts.{e}." name ".weight"
#define OF_HEADS(start) "part(light,3*k_dim," start ")"
#define JOINED(start) \
    .from_hf = OF_HEADS(start), .gguf = "blk.{i}.attn_qkv.weight", .from_gguf = OF_HEADS(start)
#define LIGHT(name, hf, ...) \
    MATRIX("blk.{i}." name ".weight", AT(hf ".weight"), "recurrent*light*k_dim", "width", \
           REQUIRED, ##__VA_ARGS__)

static const struct tensor tensors[] = {
    LIGHT("light_q", "qkv_proj", JOINED("0")),
    LIGHT("light_k", "qkv_proj", JOINED("k_dim")),
    LIGHT("light_v", "qkv_proj", JOINED("2*k_dim")),
    LIGHT("light_gate", "output_gate", .gguf = "blk.{i}.attn_gate.weight"),
    VECTOR("blk.{i}.light_norm.weight", AT("norm.weight"), "recurrent*light*k_dim", REQUIRED,
           .gguf = "blk.{i}.attn_norm_2.weight"),
    MATRIX("blk.{i}.light_output.weight", AT("out_proj.weight"), "recurrent*width", "light*k_dim",
           REQUIRED, .gguf = "blk.{i}.attn_output.weight"),
    KNOWN("blk.{i}.slope_rate", AT("slope_rate"), "follows from the layer's number"),
    KNOWN("blk.{i}.query_decay", AT("query_decay"), "of blocks, which we do not cut"),
    KNOWN("blk.{i}.key_decay", AT("key_decay"), "of blocks, which we do not cut"),
    KNOWN("blk.{i}.diagonal_decay", AT("diagonal_decay"), "of blocks, which we do not cut"),
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.block_sparse_moe.gate.weight", "experts",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", EXPERT("w1"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", EXPERT("w2"), "width", "expert_ffn", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", EXPERT("w3"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    {0},
};

static bool is_recurrent(struct build *b, uint32_t layer) {
    if (build_has(b, NULL, "layer_types")) return hybrid_is_recurrent(b, layer);
    return layer % 2 != 0;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    ob_status s = build_set(b, "light", b->hp->heads[0], error);
    if (s == OB_OK) s = hybrid_sizes(b, is_recurrent, error);
    if (s == OB_OK && b->hp->k_dim != b->hp->v_dim)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "head_dim", "head_dim", error,
                            "heads of values of another size");
    if (s == OB_OK) s = rope_read_default(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        b->hp->window[i] = b->hp->window_size;
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

/* exp(-slope), slopes as of ALiBi, smaller in later layers; NULL when out of memory. */
static const float *decays(struct build *b, uint32_t heads) {
    float *decay = arena_array(b->arena, heads, sizeof *decay);
    if (!decay) {
        b->g->failed = true;
        return NULL;
    }
    double depth = 1 - b->layer / ((double)b->hp->layers - 1 + 1e-5) + 1e-5;
    for (uint32_t h = 0; h < heads; h++)
        decay[h] = (float)exp(-pow(2, -8.0 * (h + 1) / heads) * depth);
    return decay;
}

static value_id lightning(struct build *b, value_id x) {
    struct graph *g = b->g;
    uint32_t heads = build_whole(b, "light"), dim = b->hp->k_dim;
    struct weight *w[4] = {build_weight(b, "light_q.weight"), build_weight(b, "light_k.weight"),
                           build_weight(b, "light_v.weight"), build_weight(b, "light_gate.weight")};
    value_id out[4];
    graph_linear(g, x, 4, w, NULL, out);
    for (int i = 0; i < 3; i++) out[i] = graph_act(g, out[i], b->hp->act);
    value_id y = graph_delta(g, &(struct delta_args){.q = out[0],
                                                     .k = out[1],
                                                     .v = out[2],
                                                     .decay = NO_VALUE,
                                                     .beta = NO_VALUE,
                                                     .heads = heads,
                                                     .k_heads = heads,
                                                     .k_dim = dim,
                                                     .v_dim = dim,
                                                     .fixed_decay = decays(b, heads),
                                                     .scale = 1});
    y = graph_norm(g, y, build_weight(b, "light_norm.weight"), NULL, NORM_RMS, 1e-6f, heads * dim);
    return block_linear(b, graph_glu(g, out[3], y, ACT_SIGMOID), "light_output");
}

static value_id sum(struct build *b, value_id x, const char *alpha, value_id h, const char *beta) {
    return graph_add(b->g, graph_scale(b->g, x, (float)build_number(b, alpha)),
                     graph_scale(b->g, h, (float)build_number(b, beta)));
}

static value_id layer(struct build *b, value_id x) {
    bool recurrent = b->hp->recurrent[b->layer];
    const struct decoder_args plain = {0};
    x = block_norm_named(b, x, "attn_norm");
    value_id h = recurrent ? lightning(b, x) : decoder_attention(b, x, &plain);
    x = recurrent ? sum(b, x, "linear_alpha", h, "linear_beta")
                  : sum(b, x, "full_alpha", h, "full_beta");
    x = block_norm_named(b, x, "ffn_norm");
    return sum(b, x, "mlp_alpha", moe_mlp(b, x), "mlp_beta");
}

const struct recipe model_minimax = {
    .family = "minimax",
    .gguf = "minimax-01",
    .gguf_lists_recurrent = true,
    .model_type = "minimax",
    .hf_class = "MiniMaxForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, tensors),
    .derive = derive,
    .layer = layer,
};
