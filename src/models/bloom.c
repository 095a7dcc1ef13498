/* SPDX-License-Identifier: Apache-2.0
 * bloom.c: BloomForCausalLM: linear position biases (ALiBi), a layer norm on the embeddings, q, k
 * and v of a head after those of another in one tensor. A file may ask that what a norm gives, not
 * what it takes, goes past attention and MLP. */
#include "base/error.h"
#include "models/blocks/alibi.h"
#include "models/blocks/decoder.h"

#define L "{m}h.{i}."
#define QKV_NAME L "self_attention.query_key_value"

static const struct key keys[] = {
    WHOLE("normed_residual", NULL, "apply_residual_connection_post_layernorm", OPTIONAL, 0, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}word_embeddings.weight", "vocab", "width", REQUIRED),
    VECTOR("token_embd_norm.weight", "{m}word_embeddings_layernorm.weight", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}word_embeddings_layernorm.bias", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_f.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "input_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "post_attention_layernorm.bias", "width", REQUIRED),
    FUSED_QKV(QKV_NAME, Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    FUSED_QKV_BIASES(QKV_NAME, Q_OF_HEADS, K_OF_HEADS, V_OF_HEADS),
    MATRIX("blk.{i}.attn_output.weight", L "self_attention.dense.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "self_attention.dense.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.dense_h_to_4h.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.dense_h_to_4h.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.dense_4h_to_h.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.dense_4h_to_h.bias", "width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    hp->norm = NORM_LAYER;
    if (hp->context == 0) hp->context = 2048; /* no key; there is no limit but training's */
    decoder_ffn_times(b, 4);
    build_has(b, NULL, "offset_alibi"); /* a softmax does not see an offset */
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_set(b, "attention_bias", 1, error);
    if (s != OB_OK) return s;
    hp->alibi = alibi_slopes(b->arena, hp->heads[0], 8);
    return hp->alibi ? OB_OK : error_memory(error, "position biases", hp->heads[0]);
}

static value_id layer(struct build *b, value_id x) {
    static const struct decoder_args args = {0};
    if (!build_whole(b, "normed_residual")) return decoder_layer(b, x, &args);
    x = block_norm_named(b, x, "attn_norm");
    x = block_residual(b, x, decoder_attention(b, x, &args));
    x = block_norm_named(b, x, "ffn_norm");
    return block_residual(b, x, decoder_mlp_block(b, x, &args));
}

const struct recipe model_bloom = {
    .family = "bloom",
    .gguf = "bloom",
    .model_type = "bloom",
    .hf_class = "BloomForCausalLM",
    .roots = "transformer.|",
    .act = "gelu_new",
    .act_key = "",
    KEYS(decoder_keys, keys),
    TENSORS(tensors, decoder_gguf_qkv),
    .derive = derive,
    .layer = layer,
};
