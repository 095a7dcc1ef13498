/* SPDX-License-Identifier: Apache-2.0
 * olmoe.c: OlmoeForCausalLM: a mixture of experts, norms of q and k over the whole projection,
 * after which they may be cut to a range. FlexOlmoForCausalLM has its norms after attention and
 * MLP, as OLMo 2, and cuts nothing. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    {"{arch}.attention.clamp_kqv", "clip_qkv", KEY_F32, offsetof(struct hparams, attention_clamp),
     OPTIONAL, 0, 0, 0, NULL},
    {0},
};

static const struct tensor flex_norms[] = {
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_feedforward_layernorm.weight",
           "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX}, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.wide_qk_norm = true, .late_clamp = true});
}

const struct recipe model_olmoe = {
    .family = "olmoe",
    .gguf = "olmoe",
    .model_type = "olmoe",
    .hf_class = "OlmoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_wide_qk_norms, moe_tensors),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_flex_olmo = {
    .family = "flex_olmo",
    .model_type = "flex_olmo",
    .hf_class = "FlexOlmoForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, flex_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_wide_qk_norms, moe_tensors),
    .derive = derive,
    .layer = layer,
};
