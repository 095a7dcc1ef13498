/* SPDX-License-Identifier: Apache-2.0
 * minicpm3.c: MiniCPM3ForCausalLM: latent attention with rotary halves in dense layers; embeddings,
 * sub-layers and logits are multiplied by constants. */
#include <math.h>

#include "models/blocks/mla.h"

static const struct key keys[] = {
    REAL("scale_emb", NULL, "scale_emb", OPTIONAL, 12, 0, 0),
    REAL("scale_depth", NULL, "scale_depth", OPTIONAL, 1.4, 0, 0),
    REAL("dim_model_base", NULL, "dim_model_base", OPTIONAL, 256, 1, 0),
    /* In GGUF as of heads with keys of their own. */
    WHOLE("qk", "{arch}.attention.key_length", NULL, OPTIONAL, 0, 0, 4096),
    WHOLE("v_head", "{arch}.attention.value_length", "v_head_dim", OPTIONAL, 0, 0, 4096),
    WHOLE("file_kv_heads", "{arch}.attention.head_count_kv", NULL, OPTIONAL, 0, 0, 4096),
    {0},
};

#define AT(name) "{m}layers.{i}.self_attn." name
#define JOINED "heads(nope+v_head,"

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", AT("q_proj.weight"), "q_plain*heads*qk", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q_a.weight", AT("q_a_proj.weight"), "q_lora", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q_a.bias", AT("q_a_proj.bias"), "attention_bias*q_lora", REQUIRED),
    VECTOR("blk.{i}.attn_q_a_norm.weight", AT("q_a_layernorm.weight"), "q_lora", REQUIRED),
    MATRIX("blk.{i}.attn_q_b.weight", AT("q_b_proj.weight"), "heads*qk", "q_lora", REQUIRED),
    MATRIX("blk.{i}.attn_kv_a_mqa.weight", AT("kv_a_proj_with_mqa.weight"), "kv_lora+rope",
           "width", REQUIRED),
    VECTOR("blk.{i}.attn_kv_a_mqa.bias", AT("kv_a_proj_with_mqa.bias"),
           "attention_bias*kv_lora+attention_bias*rope", REQUIRED),
    VECTOR("blk.{i}.attn_kv_a_norm.weight", AT("kv_a_layernorm.weight"), "kv_lora", REQUIRED),
    MATRIX("blk.{i}.attn_k_b.weight", AT("kv_b_proj.weight"), "kv_lora", "nope", REQUIRED,
           .from_hf = JOINED "0) T", .gguf = "blk.{i}.attn_kv_b.weight",
           .from_gguf = JOINED "0) T f32"),
    MATRIX("blk.{i}.attn_v_b.weight", AT("kv_b_proj.weight"), "v_head", "kv_lora", REQUIRED,
           .from_hf = JOINED "nope)", .gguf = "blk.{i}.attn_kv_b.weight",
           .from_gguf = JOINED "nope)"),
    MATRIX("blk.{i}.attn_output.weight", AT("o_proj.weight"), "width", "heads*v_head", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", AT("o_proj.bias"), "attention_bias*width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = mla_derive(b, error);
    if (s != OB_OK) return s;
    hp->embed_scale = (float)build_number(b, "scale_emb");
    hp->residual_scale = (float)(build_number(b, "scale_depth") / sqrt((double)hp->layers));
    hp->logit_scale = (float)(build_number(b, "dim_model_base") / hp->width);
    return build_set(b, "file_kv_heads", hp->heads[0], error);
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    return mla_attention(b, x, &(struct mla_args){.halves = true});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_minicpm3 = {
    .family = "minicpm3",
    .gguf = "minicpm3",
    .model_type = "minicpm3",
    .hf_class = "MiniCPM3ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, keys),
    TENSORS(decoder_ends, decoder_norms, tensors, decoder_mlp, decoder_mlp_biases),
    .derive = derive,
    .layer = layer,
};
