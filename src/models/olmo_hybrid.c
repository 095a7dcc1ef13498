/* SPDX-License-Identifier: Apache-2.0
 * olmo_hybrid.c: OlmoHybridForCausalLM: gated delta nets behind a norm, and OLMo 3's attention,
 * whose norms are on the sub-layers' outputs, with a rope where the file has one. */
#include "models/blocks/decoder.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("neg_eigval", NULL, "linear_allow_neg_eigval", OPTIONAL, 1, 0, 1),
    {0},
};

#define AT(name) "{m}layers.{i}." name
#define LINEAR(name, rows, hf) \
    MATRIX("blk.{i}." name ".weight", AT("linear_attn." hf ".weight"), "recurrent*" rows, "width", \
           REQUIRED)

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight",
           AT("attention_layer_norm.weight|") AT("input_layernorm.weight"), "recurrent*width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight",
           AT("feedforward_layer_norm.weight|") AT("post_attention_layernorm.weight"),
           "recurrent*width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight",
           AT("post_attention_layernorm.weight|") AT("feedforward_layer_norm.weight"),
           "attends*width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", AT("post_feedforward_layernorm.weight"),
           "attends*width", REQUIRED),
    LINEAR("ssm_q", "key", "q_proj"),
    LINEAR("ssm_k", "key", "k_proj"),
    LINEAR("ssm_v", "value", "v_proj"),
    LINEAR("attn_gate", "value", "g_proj"),
    LINEAR("ssm_beta", "lin_v_heads", "b_proj"),
    LINEAR("ssm_alpha", "lin_v_heads", "a_proj"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    float base;
    ob_status s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = deltanet_sizes(b, error);
    if (s != OB_OK || !build_f32(b, NULL, "rope_parameters.rope_theta|rope_theta", &base)) return s;
    return rope_read_default(b, error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return decoder_attention(b, x, args);
    return deltanet_plain(b, x, &(struct deltanet_args){
                                    .norm_eps = 1e-5f,
                                    .beta_scale = build_whole(b, "neg_eigval") ? 2 : 0});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer, .wide_qk_norm = true});
}

const struct recipe model_olmo_hybrid = {
    .family = "olmo_hybrid",
    .model_type = "olmo_hybrid",
    .hf_class = "OlmoHybridForCausalLM",
    KEYS(decoder_keys, deltanet_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_wide_qk_norms,
            deltanet_tensors, deltanet_three_convs, deltanet_one_conv, decoder_mlp),
    .derive = derive,
    .layer = layer,
};
