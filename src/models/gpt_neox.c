/* SPDX-License-Identifier: Apache-2.0
 * gpt_neox.c: GPTNeoXForCausalLM (Pythia): attention and MLP side by side behind layer norms of
 * their own, q, k and v of a head after those of another in one tensor, rotary embedding on a part
 * of each head. GPTNeoXJapaneseForCausalLM is serial, with one bias: the last attention's. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

#define L "{m}layers.{i}."
#define QKV_NAME L "attention.query_key_value"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "attention_bias", OPTIONAL, 1, 0, 1),
    WHOLE("parallel", "{arch}.use_parallel_residual", "use_parallel_residual", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct key japanese_keys[] = {
    WHOLE("ffn_times", NULL, "intermediate_multiple_size", OPTIONAL, 4, 1, 1024),
    {0},
};

static const struct tensor block[] = {
    MATRIX("token_embd.weight", "{m}embed_in.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "embed_out.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}final_layer_norm.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}final_layer_norm.bias", "width", REQUIRED),
    FUSED_QKV(QKV_NAME, Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    MATRIX("blk.{i}.attn_output.weight", L "attention.dense.weight", "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.dense_h_to_4h.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.dense_4h_to_h.weight", "width", "ffn", REQUIRED),
    KNOWN("blk.{i}.attn_mask", L "attention.bias", "the mask is computed"),
    KNOWN("blk.{i}.attn_masked", L "attention.masked_bias", "the mask is computed"),
    KNOWN("blk.{i}.attn_rot_embd", L "attention.rotary_emb.inv_freq",
          "frequencies are computed from the keys"),
    {0},
};

static const struct tensor norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "input_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "post_attention_layernorm.bias", "width", REQUIRED),
    {0},
};

static const struct tensor biases[] = {
    FUSED_QKV_BIASES(QKV_NAME, Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    VECTOR("blk.{i}.attn_output.bias", L "attention.dense.bias", "attention_bias*width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.dense_h_to_4h.bias", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.dense_4h_to_h.bias", "width", REQUIRED),
    {0},
};

static const struct tensor japanese_bias[] = {
    VECTOR("blk.{i}.attn_output.bias", L "attention.dense_bias", "width", OPTIONAL,
           .needed = "is_last"),
    {0},
};

static ob_status derive_part(struct build *b, float part, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters",
                                           .base_key_hf = "rope_theta|rotary_emb_base",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = 10000,
                                           .scaled = true,
                                           .part = part},
                     &b->hp->rope, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    return derive_part(b, 0.25f, error);
}

static ob_status derive_japanese(struct build *b, ob_error *error) {
    decoder_ffn_times(b, build_whole(b, "ffn_times"));
    return derive_part(b, 1, error);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(
        b, x, &(struct decoder_args){.parallel = build_whole(b, "parallel") != 0});
}

const struct recipe model_gpt_neox = {
    .family = "gpt_neox",
    .gguf = "gptneox",
    .model_type = "gpt_neox",
    .hf_class = "GPTNeoXForCausalLM",
    .foreign = "rope_theta|partial_rotary_factor",
    .turns_parts = true,
    .roots = "gpt_neox.",
    .act = "gelu",
    KEYS(decoder_keys, keys),
    TENSORS(block, norms, biases, decoder_gguf_qkv),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_gpt_neox_japanese = {
    .family = "gpt_neox_japanese",
    .model_type = "gpt_neox_japanese",
    .hf_class = "GPTNeoXJapaneseForCausalLM",
    .foreign = "rope_theta|partial_rotary_factor",
    .turns_parts = true,
    .roots = "gpt_neox_japanese.",
    .act = "gelu",
    KEYS(decoder_keys, japanese_keys),
    TENSORS(block, norms, japanese_bias),
    .derive = derive_japanese,
    .layer = decoder_plain_layer,
};
