/* SPDX-License-Identifier: Apache-2.0
 * glm.c: GlmForCausalLM: Llama with rotary pairs on half of each head, biases on q, k and v, and
 * gate and up in one tensor. Glm4ForCausalLM has norms after attention and MLP, too. */
#include "models/blocks/decoder.h"

static const struct tensor sandwich[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_self_attn_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_mlp_layernorm.weight", "width",
           REQUIRED),
    {0},
};

const struct recipe model_glm = {
    .family = "glm",
    .gguf = "chatglm",
    .model_type = "glm",
    .hf_class = "GlmForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_input_biases,
            decoder_fused_mlp),
    .derive = decoder_derive,
    .layer = decoder_paired_layer,
};

const struct recipe model_glm4 = {
    .family = "glm4",
    .gguf = "glm4",
    .model_type = "glm4",
    .hf_class = "Glm4ForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, sandwich, decoder_attention_tensors, decoder_input_biases,
            decoder_fused_mlp),
    .derive = decoder_derive,
    .layer = decoder_paired_layer,
};
