/* SPDX-License-Identifier: Apache-2.0
 * seed_oss.c: SeedOssForCausalLM: Llama with rotary halves and biases on q, k and v; the output of
 * attention and the MLP have theirs by keys of their own. */
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "attention_bias", OPTIONAL, 1, 0, 1),
    WHOLE("attention_out_bias", NULL, "attention_out_bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "mlp_bias", OPTIONAL, 0, 0, 1),
    {0},
};

#define L "{m}layers.{i}."

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "width", REQUIRED,
           .gguf = "blk.{i}.post_attention_norm.weight"),
    VECTOR("blk.{i}.attn_q.bias", L "self_attn.q_proj.bias", "attention_bias*heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", L "self_attn.k_proj.bias", "attention_bias*kv_heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", L "self_attn.v_proj.bias", "attention_bias*kv_heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "self_attn.o_proj.bias", "attention_out_bias*width",
           REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK || source_kind(b->meta) != SOURCE_GGUF) return s;
    bool there = source_tensor_find(b->source, STR_LIT("blk.0.attn_output.bias"));
    return build_set(b, "attention_out_bias", there, error);
}

const struct recipe model_seed_oss = {
    .family = "seed_oss",
    .gguf = "seed_oss",
    .model_type = "seed_oss",
    .hf_class = "SeedOssForCausalLM",
    KEYS(decoder_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_mlp, decoder_mlp_biases),
    .derive = derive,
    .layer = decoder_plain_layer,
};
