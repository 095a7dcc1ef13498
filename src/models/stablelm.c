/* SPDX-License-Identifier: Apache-2.0
 * stablelm.c: StableLmForCausalLM: Llama with layer norms, rotary embedding on part of each head,
 * and, in StableLM 2 12B, attention and MLP side by side and a norm of its own for each head of q
 * and k. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "use_qkv_bias", OPTIONAL, 0, 0, 1),
    WHOLE("qk_norm", NULL, "qk_layernorm", OPTIONAL, 0, 0, 1),
    WHOLE("parallel", "{arch}.use_parallel_residual", "use_parallel_residual", OPTIONAL, 0, 0, 1),
    {0},
};

#define L "{m}layers.{i}."
static const struct tensor tensors[] = {
    VECTOR("output_norm.bias", "{m}norm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "input_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "serial*width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "post_attention_layernorm.bias", "serial*width", REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", L "self_attn.q_layernorm.norms.{e}.weight",
           "qk_norm*heads*k_dim", REQUIRED, .gguf_row = "k_dim", .from_hf = "join(heads)"),
    VECTOR("blk.{i}.attn_k_norm.weight", L "self_attn.k_layernorm.norms.{e}.weight",
           "qk_norm*kv_heads*k_dim", REQUIRED, .gguf_row = "k_dim", .from_hf = "join(kv_heads)"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK && source_tensor_find(b->source, STR_LIT("blk.0.attn_q_norm.weight")))
        s = build_set(b, "qk_norm", 1, error);
    if (s == OB_OK) s = build_set(b, "serial", !build_whole(b, "parallel"), error);
    return s == OB_OK ? rope_read_part(b, 0.25f, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(
        b, x, &(struct decoder_args){.parallel = build_whole(b, "parallel") != 0});
}

const struct recipe model_stablelm = {
    .family = "stablelm",
    .gguf = "stablelm",
    .model_type = "stablelm",
    .hf_class = "StableLmForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp),
    .derive = derive,
    .layer = layer,
};
