/* SPDX-License-Identifier: Apache-2.0
 * phi.c: PhiForCausalLM (Phi 1, 1.5 and 2): attention and MLP side by side behind one layer norm,
 * rotary embedding on half of each head, biases, logits too. PersimmonForCausalLM is serial, has
 * q, k and v of a head after those of another in one tensor, and no bias of logits. Both may have
 * layer norms of each head of q and k. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key phi_keys[] = {
    WHOLE("qk_norm", NULL, "qk_layernorm", OPTIONAL, 0, 0, 1),
    {0},
};

static const struct key persimmon_keys[] = {
    WHOLE("qk_norm", NULL, "qk_layernorm", OPTIONAL, 1, 0, 1),
    {0},
};

#define L "{m}layers.{i}."
static const struct tensor both[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight|language_model.lm_head.weight", "vocab", "width",
           OPTIONAL),
    VECTOR("output_norm.weight", "{m}final_layernorm.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}final_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "input_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", L "self_attn.q_layernorm.weight", "qk_norm*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.bias", L "self_attn.q_layernorm.bias", "qk_norm*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", L "self_attn.k_layernorm.weight", "qk_norm*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.bias", L "self_attn.k_layernorm.bias", "qk_norm*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "self_attn.dense.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "self_attn.dense.bias", "width", REQUIRED),
    KNOWN("blk.{i}.attn_rot_embd", L "self_attn.rotary_emb.inv_freq",
          "frequencies are computed from the keys"),
    {0},
};

static const struct tensor phi_tensors[] = {
    VECTOR("output.bias", "lm_head.bias", "vocab", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.fc1.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.fc1.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.fc2.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.fc2.bias", "width", REQUIRED),
    {0},
};

/* decoder_attention_tensors without the output, which has another name. */
static const struct tensor phi_qkv[] = {
    MATRIX("blk.{i}.attn_q.weight", L "self_attn.q_proj.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "self_attn.k_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "self_attn.v_proj.weight", "kv_heads*v_dim", "width",
           REQUIRED),
    {0},
};

static const struct tensor persimmon_tensors[] = {
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "post_attention_layernorm.bias", "width", REQUIRED),
    FUSED_QKV(L "self_attn.query_key_value", Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    FUSED_QKV_BIASES(L "self_attn.query_key_value", Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.dense_h_to_4h.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.dense_h_to_4h.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.dense_4h_to_h.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.dense_4h_to_h.bias", "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_set(b, "attention_bias", 1, error);
    return s == OB_OK ? rope_read_part(b, 0.5f, error) : s;
}

static value_id phi_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.parallel = true});
}

const struct recipe model_phi = {
    .family = "phi",
    .gguf = "phi2",
    .model_type = "phi",
    .hf_class = "PhiForCausalLM",
    .turns_parts = true,
    .act = "gelu_new",
    KEYS(decoder_keys, phi_keys),
    TENSORS(both, phi_tensors, phi_qkv, decoder_qkv_biases, decoder_gguf_qkv),
    .derive = derive,
    .layer = phi_layer,
};

const struct recipe model_persimmon = {
    .family = "persimmon",
    .model_type = "persimmon",
    .hf_class = "PersimmonForCausalLM",
    .turns_parts = true,
    .act = "relu2",
    KEYS(decoder_keys, persimmon_keys),
    TENSORS(both, persimmon_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
