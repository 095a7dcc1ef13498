/* SPDX-License-Identifier: Apache-2.0
 * longcat_flash.c: LongcatFlashForCausalLM: a layer is two of latent attention and a plain MLP
 * each; what a mixture of experts makes of the first one's input to its MLP is added at the end of
 * the second. Experts beyond those with matrices hand their input through. */
#include <math.h>

#include "base/error.h"
#include "models/blocks/mla.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    WHOLE("mlp", NULL, "ffn_hidden_size", REQUIRED, 0, 1, 1 << 24),
    WHOLE("identity_experts", NULL, "zero_expert_num", OPTIONAL, 256, 0, 4096),
    {0},
};

#define HALF(ours, n)                                                                             \
    MLA_TENSORS("attn" ours, "self_attn." n, "o_proj"),                                           \
    VECTOR("blk.{i}.attn" ours "_norm.weight", "{m}layers.{i}.input_layernorm." n ".weight",      \
           "width", REQUIRED),                                                                    \
    VECTOR("blk.{i}.ffn" ours "_norm.weight",                                                     \
           "{m}layers.{i}.post_attention_layernorm." n ".weight", "width", REQUIRED),             \
    MATRIX("blk.{i}.ffn" ours "_gate.weight", "{m}layers.{i}.mlps." n ".gate_proj.weight", "mlp", \
           "width", REQUIRED),                                                                    \
    MATRIX("blk.{i}.ffn" ours "_up.weight", "{m}layers.{i}.mlps." n ".up_proj.weight", "mlp",     \
           "width", REQUIRED),                                                                    \
    MATRIX("blk.{i}.ffn" ours "_down.weight", "{m}layers.{i}.mlps." n ".down_proj.weight",        \
           "width", "mlp", REQUIRED)

static const struct tensor tensors[] = {
    HALF("", "0"),
    HALF("_1", "1"),
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.mlp.router.classifier.weight",
           "experts+identity_experts", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", "{m}layers.{i}.mlp.router.e_score_correction_bias",
           "experts+identity_experts", REQUIRED),
    KNOWN("mtp.*", "{m}mtp.*", "predicts further tokens"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX, .scale = 1};
    static const struct plain plain[] = {
        {NULL, "mla_scale_q_lora", 1, 1, "queries that are not scaled"},
        {NULL, "mla_scale_kv_lora", 1, 1, "latents that are not scaled"},
        {0},
    };
    struct str kind = STR_LIT("identity");
    ob_status s = mla_derive(b, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    build_str(b, NULL, "zero_expert_type", &kind);
    if (s == OB_OK && !str_is(kind, "identity"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "zero_expert_type", error,
                            "\"%.*s\" is not known", STR_ARG(kind));
    if (s == OB_OK && b->hp->expert_count + build_whole(b, "identity_experts") > ROUTE_EXPERTS_MAX)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "zero_expert_num", error,
                            "more than %u experts", ROUTE_EXPERTS_MAX);
    return s;
}

static value_id attention(struct build *b, value_id x, const char *block) {
    double width = b->hp->width;
    struct mla_args args = {.block = block,
                            .q_scale = (float)sqrt(width / build_number(b, "q_lora")),
                            .latent_scale = (float)sqrt(width / build_number(b, "kv_lora"))};
    return mla_attention(b, x, &args);
}

static value_id mlp(struct build *b, value_id x, const char *gate, const char *up,
                    const char *down) {
    value_id g = block_linear(b, x, gate), u = block_linear(b, x, up);
    return block_linear(b, graph_glu(b->g, g, u, b->hp->act), down);
}

/* The mixture; the token itself by the weights of experts without a matrix. */
static value_id mixture(struct build *b, value_id x) {
    struct graph *g = b->g;
    struct weight *w[2] = {build_weight(b, "ffn_up_exps.weight"),
                           build_weight(b, "ffn_gate_exps.weight")},
                  *down = build_weight(b, "ffn_down_exps.weight");
    struct route_args args = b->hp->route;
    args.bias = build_weight(b, "exp_probs_b.bias");
    value_id route = graph_route(g, block_linear(b, x, "ffn_gate_inp"), &args), out[2], y;
    graph_linear_experts(g, x, route, 2, w, NULL, out);
    graph_linear_experts(g, graph_glu(g, out[1], out[0], b->hp->act), route, 1, &down, NULL, &y);
    y = graph_combine(g, y, route);
    if (build_whole(b, "identity_experts") == 0) return y;
    return graph_add(g, y, graph_mul(g, x, graph_route_rest(g, route, b->hp->expert_count)));
}

static value_id layer(struct build *b, value_id x) {
    struct graph *g = b->g;
    x = graph_add(g, x, attention(b, block_norm_named(b, x, "attn_norm"), "attn"));
    value_id h = block_norm_named(b, x, "ffn_norm"), shortcut = mixture(b, h);
    x = graph_add(g, x, mlp(b, h, "ffn_gate", "ffn_up", "ffn_down"));
    x = graph_add(g, x, attention(b, block_norm_named(b, x, "attn_1_norm"), "attn_1"));
    h = block_norm_named(b, x, "ffn_1_norm");
    x = graph_add(g, x, mlp(b, h, "ffn_1_gate", "ffn_1_up", "ffn_1_down"));
    return graph_add(g, x, shortcut);
}

/* moe_tensors without its router. */
static const struct tensor experts[] = {
    MATRIX("blk.{i}.ffn_gate_exps.weight", "{m}layers.{i}.mlp.experts.{e}.gate_proj.weight",
           "expert_ffn", "width", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", "{m}layers.{i}.mlp.experts.{e}.up_proj.weight",
           "expert_ffn", "width", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.mlp.experts.{e}.down_proj.weight",
           "width", "expert_ffn", REQUIRED, .from_hf = "stack"),
    KNOWN("blk.{i}.identity_exps.*", "{m}layers.{i}.mlp.experts.*",
          "experts beyond those with matrices hand their input through"),
    {0},
};

const struct recipe model_longcat_flash = {
    .family = "longcat_flash",
    .model_type = "longcat_flash",
    .hf_class = "LongcatFlashForCausalLM",
    .foreign = "norm_topk_prob",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys, keys),
    TENSORS(decoder_ends, tensors, experts),
    .derive = derive,
    .layer = layer,
};
