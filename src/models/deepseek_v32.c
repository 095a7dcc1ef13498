/* SPDX-License-Identifier: Apache-2.0
 * deepseek_v32.c: DeepseekV32ForCausalLM: DeepSeek-V3 whose tokens attend to the keys that an
 * indexer chooses. GlmMoeDsaForCausalLM: in some layers those of the layer before. AXK2ForCausalLM:
 * queries and a gate of heads from the latent beside its norm; norms with gates of their own. */
#include "base/error.h"
#include "models/blocks/moe.h"
#include "models/deepseek_v2.h"

static const struct tensor indexer[] = {MLA_INDEXER, {0}};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = deepseek_v3_derive(b, error);
    return s == OB_OK ? mla_indexers(b, mla_has_indexer, error) : s;
}

/* ---- the layer ---- */

/* The norm; where it has a gate, times the sigmoid of what two small matrices make of it. */
static value_id gated_norm(struct build *b, value_id x, const char *norm, const char *down,
                           const char *up, const char *there) {
    value_id y = block_norm_named(b, x, norm);
    if (!build_weight(b, there)) return y;
    value_id gate = block_linear(b, graph_act(b->g, block_linear(b, y, down), ACT_SILU), up);
    return graph_glu(b->g, gate, y, ACT_SIGMOID);
}

static value_id layer_with(struct build *b, value_id x, const struct mla_args *args) {
    value_id h = gated_norm(b, x, "attn_norm", "attn_norm_down", "attn_norm_up",
                            "attn_norm_down.weight");
    x = graph_add(b->g, x, mla_attention(b, h, args));
    h = gated_norm(b, x, "ffn_norm", "ffn_norm_down", "ffn_norm_up", "ffn_norm_down.weight");
    return graph_add(b->g, x, decoder_mlp_block(b, h, &(struct decoder_args){0}));
}

static value_id layer(struct build *b, value_id x) {
    value_id selection;
    return layer_with(b, x, &(struct mla_args){.selection = &selection, .has_indexer = true});
}

const struct recipe model_deepseek_v32 = {
    .family = "deepseek_v32",
    .gguf = "deepseek32",
    .model_type = "deepseek_v32",
    .hf_class = "DeepseekV32ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, mla_index_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, indexer, decoder_mlp, decoder_mlp_biases,
            moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = layer,
};

/* ---- GLM ---- */

static ob_status derive_glm(struct build *b, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, "indexer_rope_interleave", 1, 1, "an indexer with rotary halves"},
        {0},
    };
    if (!build_has(b, "{arch}.leading_dense_block_count", "first_k_dense_replace"))
        b->hp->dense_layers = 3;
    ob_status s = derive(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s == OB_OK && !mla_has_indexer(b, 0))
        return build_refuse(b, OB_ERR_FORMAT, NULL, "indexer_types", error,
                            "the first layer has none to share");
    return s;
}

static value_id body_glm(struct build *b, value_id x) {
    value_id selection = NO_VALUE;
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer_with(b, x, &(struct mla_args){.selection = &selection,
                                                .has_indexer = mla_has_indexer(b, b->layer),
                                                .index_interleaved = true});
    }
    return x;
}

const struct recipe model_glm_moe_dsa = {
    .family = "glm_moe_dsa",
    .gguf = "glm-dsa",
    .model_type = "glm_moe_dsa",
    .hf_class = "GlmMoeDsaForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, mla_index_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, indexer, decoder_mlp, decoder_mlp_biases,
            moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive_glm,
    .body = body_glm,
};

/* ---- A.X-K2 ---- */

static const struct key axk2_keys[] = {
    WHOLE("norm_rank", NULL, "gated_norm_rank", OPTIONAL, 16, 1, 1 << 16),
    {0},
};

static const struct tensor axk2_tensors[] = {
    MLA_REST("attn", "self_attn", "o_proj"),
    MATRIX("blk.{i}.attn_q_b.weight", "{m}layers.{i}.self_attn.q_b_proj.weight", "heads*qk",
           "2*q_lora", REQUIRED, .from_hf = "part(heads,qk+v_head,0)"),
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.q_b_proj.weight", "heads*v_head",
           "2*q_lora", REQUIRED, .from_hf = "part(heads,qk+v_head,qk)"),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.norm.weight", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_norm_down.weight", "{m}layers.{i}.input_layernorm.W_down.weight",
           "norm_rank", "width", REQUIRED),
    MATRIX("blk.{i}.attn_norm_up.weight", "{m}layers.{i}.input_layernorm.W_up.weight", "width",
           "norm_rank", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight",
           "{m}layers.{i}.post_attention_layernorm.norm.weight|"
           "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_norm_down.weight", "{m}layers.{i}.post_attention_layernorm.W_down.weight",
           "norm_rank", "sparse*width", REQUIRED),
    MATRIX("blk.{i}.ffn_norm_up.weight", "{m}layers.{i}.post_attention_layernorm.W_up.weight",
           "sparse*width", "norm_rank", REQUIRED),
    {0},
};

static ob_status derive_axk2(struct build *b, ob_error *error) {
    ob_status s = derive(b, error);
    b->hp->route.group_zero = true;
    return s;
}

static value_id layer_axk2(struct build *b, value_id x) {
    value_id selection;
    return layer_with(b, x, &(struct mla_args){
                                .selection = &selection, .has_indexer = true, .raw_beside = true});
}

const struct recipe model_axk2 = {
    .family = "axk2",
    .model_type = "axk2",
    .hf_class = "AXK2ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, mla_index_keys, moe_keys, axk2_keys),
    TENSORS(decoder_ends, axk2_tensors, indexer, decoder_mlp, moe_tensors, moe_shared_tensors,
            moe_bias_tensors),
    .derive = derive_axk2,
    .layer = layer_axk2,
};
