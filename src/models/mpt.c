/* SPDX-License-Identifier: Apache-2.0
 * mpt.c: MptForCausalLM: linear position biases (ALiBi), layer norms without biases, q, k and v in
 * one tensor and cut to a range, a plain MLP of four times the width. */
#include "base/error.h"
#include "models/blocks/alibi.h"
#include "models/blocks/decoder.h"

#define L "{m}blocks.{i}."

static const struct key keys[] = {
    {"{arch}.attention.clamp_kqv", "attn_config.clip_qkv", KEY_F32,
     offsetof(struct hparams, attention_clamp), OPTIONAL, 0, 0, 0, NULL},
    REAL("scale", NULL, "attn_config.softmax_scale", OPTIONAL, 0, 0, 0),
    REAL("largest_slope", "{arch}.attention.max_alibi_bias", NULL, OPTIONAL, 8, 0, 0),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}norm_f.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "norm_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "norm_2.weight", "width", REQUIRED),
    FUSED_QKV(L "attn.Wqkv", Q_OF_QKV, K_OF_QKV, V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", L "attn.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "ffn.up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "ffn.down_proj.weight", "width", "ffn", REQUIRED),
    {0},
};

/* transformers computes the same whatever these say; models that want more are others. */
static const struct plain plain[] = {
    {NULL, "attn_config.alibi", 1, 1, "no ALiBi"},
    {NULL, "attn_config.alibi_bias_max", 8, 8, "a largest slope of ALiBi"},
    {NULL, "attn_config.qk_ln", 0, 0, "norms of q and k"},
    {NULL, "attn_config.prefix_lm", 0, 0, "a prefix seen from both sides"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    hp->norm = NORM_LAYER;
    decoder_ffn_times(b, 4);
    ob_status s = build_plain(b, plain, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    if (build_number(b, "scale") > 0) hp->attention_scale = (float)build_number(b, "scale");
    hp->alibi = alibi_slopes(b->arena, hp->heads[0], (float)build_number(b, "largest_slope"));
    return hp->alibi ? OB_OK : error_memory(error, "position biases", hp->heads[0]);
}

const struct recipe model_mpt = {
    .family = "mpt",
    .gguf = "mpt",
    .model_type = "mpt",
    .hf_class = "MptForCausalLM",
    .roots = "transformer.",
    .act = "gelu",
    .act_key = "",
    KEYS(decoder_keys, keys),
    TENSORS(tensors, decoder_gguf_qkv),
    .derive = derive,
    .layer = decoder_plain_layer,
};
