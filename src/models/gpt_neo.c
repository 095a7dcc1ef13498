/* SPDX-License-Identifier: Apache-2.0
 * gpt_neo.c: GPTNeoForCausalLM: GPT-2 without a scale of scores and without biases on q, k and v,
 * with a window in the layers that attention_layers calls local. */
#include "models/blocks/decoder.h"

#define L "{m}h.{i}."

static const struct key keys[] = {
    {NULL, "window_size", KEY_U32, offsetof(struct hparams, window_size), OPTIONAL, 256, 1, 0,
     NULL},
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("position_embd.weight", "{m}wpe.weight", "context", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_f.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "ln_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "ln_1.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "ln_2.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "ln_2.bias", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", L "attn.attention.q_proj.weight", "heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "attn.attention.k_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "attn.attention.v_proj.weight", "kv_heads*v_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "attn.attention.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "attn.attention.out_proj.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.c_fc.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.c_fc.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.c_proj.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.c_proj.bias", "width", REQUIRED),
    KNOWN("blk.{i}.attn_mask", L "attn.attention.bias", "the mask is computed"),
    KNOWN("blk.{i}.attn_masked", L "attn.attention.masked_bias", "the mask is computed"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    hp->norm = NORM_LAYER;
    decoder_ffn_times(b, 4);
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    hp->attention_scale = 1;
    build_wants(b, NULL, "attention_layers", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        struct str type;
        bool named = build_str_at(b, NULL, "attention_layers", i, &type);
        if (!named || (!str_is(type, "local") && !str_is(type, "global")))
            return build_refuse(b, OB_ERR_FORMAT, "attention_layers", "attention_layers", error,
                                "must name each layer local or global (layer %u)", i);
        hp->window[i] = str_is(type, "local") ? hp->window_size : 0;
    }
    return OB_OK;
}

const struct recipe model_gpt_neo = {
    .family = "gpt_neo",
    .model_type = "gpt_neo",
    .hf_class = "GPTNeoForCausalLM",
    .roots = "transformer.",
    .act = "gelu_new",
    KEYS(decoder_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
