/* SPDX-License-Identifier: Apache-2.0
 * gptj.c: GPTJForCausalLM: attention and MLP side by side behind one layer norm, rotary pairs on
 * the first rotary_dim dimensions, biases in the MLP and on the logits. CodeGenForCausalLM has q,
 * v and k in one tensor, cut into four for the machines that it was trained on. */
#include "models/blocks/decoder.h"

#define L "{m}h.{i}."

static const struct key keys[] = {
    {NULL, "rotary_dim", KEY_U32, offsetof(struct hparams, rope_dim), OPTIONAL, 64, 2, 4096, NULL},
    {0},
};

static const struct tensor block[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output.bias", "lm_head.bias", "vocab", REQUIRED),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_f.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "ln_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "ln_1.bias", "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "attn.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.fc_in.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.fc_in.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.fc_out.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.fc_out.bias", "width", REQUIRED),
    KNOWN("blk.{i}.attn_mask", L "attn.bias|" L "attn.causal_mask", "the mask is computed"),
    KNOWN("blk.{i}.attn_masked", L "attn.masked_bias", "the mask is computed"),
    {0},
};

static const struct tensor gptj_qkv[] = {
    MATRIX("blk.{i}.attn_q.weight", L "attn.q_proj.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "attn.k_proj.weight", "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "attn.v_proj.weight", "kv_heads*v_dim", "width", REQUIRED),
    {0},
};

static const struct tensor codegen_qkv[] = {
    FUSED_QKV(L "attn.qkv_proj", "part(4,3*heads*k_dim/4,0)",
              "part(4,3*kv_heads*k_dim/4,kv_heads*k_dim/2)",
              "part(4,3*kv_heads*v_dim/4,kv_heads*v_dim/4)"),
    {0},
};

/* Older files say so. */
static const struct plain plain[] = {
    {NULL, "rotary", 1, 1, "no rotary embedding"},
    {NULL, "scale_attn_weights", 1, 1, "scores without a scale"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    decoder_ffn_times(b, 4);
    ob_status s = build_plain(b, plain, error);
    return s == OB_OK ? decoder_derive(b, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.interleaved = true, .parallel = true});
}

const struct recipe model_gptj = {
    .family = "gptj",
    .model_type = "gptj",
    .hf_class = "GPTJForCausalLM",
    .foreign = "rope_parameters|rope_scaling|rope_theta",
    .roots = "transformer.",
    .act = "gelu_new",
    KEYS(decoder_keys, keys),
    TENSORS(block, gptj_qkv),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_codegen = {
    .family = "codegen",
    .model_type = "codegen",
    .hf_class = "CodeGenForCausalLM",
    .foreign = "rope_parameters|rope_scaling|rope_theta",
    .roots = "transformer.",
    .act = "gelu_new",
    KEYS(decoder_keys, keys),
    TENSORS(block, codegen_qkv),
    .derive = derive,
    .layer = layer,
};
