/* SPDX-License-Identifier: Apache-2.0
 * falcon.c: FalconForCausalLM in its three forms: attention and MLP side by side behind one norm
 * (7B) or a norm for each (40B, 180B), or one after the other with position biases instead of a
 * rope (RW). q, k and v are in one tensor: the queries of a key head, the key head, its values. */
#include "base/error.h"
#include "models/blocks/alibi.h"
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

#define L "{m}h.{i}."
#define QKV_NAME L "self_attention.query_key_value"
#define GROUP "part(kv_heads,heads*k_dim/kv_heads+2*k_dim,"
#define Q_OF_GROUP GROUP "0)"
#define K_OF_GROUP GROUP "heads*k_dim/kv_heads)"
#define V_OF_GROUP GROUP "heads*k_dim/kv_heads+k_dim)"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "bias", OPTIONAL, 0, 0, 1),
    WHOLE("alibi", NULL, "alibi", OPTIONAL, 0, 0, 1),
    WHOLE("newer", NULL, "new_decoder_architecture", OPTIONAL, 0, 0, 1),
    WHOLE("multi_query", NULL, "multi_query", OPTIONAL, 1, 0, 1),
    WHOLE("parallel", NULL, "parallel_attn", OPTIONAL, 1, 0, 1),
    WHOLE("norms", NULL, "num_ln_in_parallel_attn", OPTIONAL, 0, 0, 2),
    WHOLE("key_heads", NULL, "num_kv_heads|n_head_kv", OPTIONAL, 0, 0, 1024),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}word_embeddings.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}ln_f.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}ln_f.bias", "width", REQUIRED),
    FUSED_QKV(QKV_NAME, Q_OF_GROUP, K_OF_GROUP, V_OF_GROUP),
    FUSED_QKV_BIASES(QKV_NAME, Q_OF_GROUP, K_OF_GROUP, V_OF_GROUP),
    MATRIX("blk.{i}.attn_output.weight", L "self_attention.dense.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "self_attention.dense.bias", "attention_bias*width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "mlp.dense_h_to_4h.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "mlp.dense_h_to_4h.bias", "mlp_bias*ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "mlp.dense_4h_to_h.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "mlp.dense_4h_to_h.bias", "mlp_bias*width", REQUIRED),
    {0},
};

/* In GGUF the second norm, where there is one, is attention's. */
static const struct tensor norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", L "ln_attn.weight", "two_norms*width", REQUIRED,
           .gguf = "blk.{i}.attn_norm_2.weight"),
    VECTOR("blk.{i}.attn_norm.bias", L "ln_attn.bias", "two_norms*width", REQUIRED,
           .gguf = "blk.{i}.attn_norm_2.bias"),
    VECTOR("blk.{i}.ffn_norm.weight", L "ln_mlp.weight", "two_norms*width", REQUIRED,
           .gguf = "blk.{i}.attn_norm.weight"),
    VECTOR("blk.{i}.ffn_norm.bias", L "ln_mlp.bias", "two_norms*width", REQUIRED,
           .gguf = "blk.{i}.attn_norm.bias"),
    VECTOR("blk.{i}.attn_norm.weight", L "input_layernorm.weight", "one_norm*width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "input_layernorm.bias", "one_norm*width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "post_attention_layernorm.weight", "serial*width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "post_attention_layernorm.bias", "serial*width", REQUIRED),
    {0},
};

/* Which norms there are, and how many key heads. */
static ob_status derive_form(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    bool newer = build_whole(b, "newer"), parallel = build_whole(b, "parallel");
    uint32_t count = build_whole(b, "norms"), key_heads = build_whole(b, "key_heads");
    if (count == 0) count = newer ? 2 : 1;
    bool two = gguf ? source_tensor_find(b->source, STR_LIT("blk.0.attn_norm_2.weight")) != NULL
                    : parallel && newer && count == 2;
    if (newer && !parallel)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "parallel_attn", "parallel_attn", error,
                            "false is not supported with new_decoder_architecture");
    for (uint32_t i = 0; !gguf && i < hp->layers; i++)
        hp->kv_heads[i] = !newer && build_whole(b, "multi_query") ? 1
                          : key_heads                              ? key_heads
                                                                   : hp->heads[i];
    ob_status s = build_set(b, "two_norms", two, error);
    if (s == OB_OK) s = build_set(b, "one_norm", !two, error);
    return s == OB_OK ? build_set(b, "serial", !parallel, error) : s;
}

/* The biases are multiplied by the scale of scores, too, and count twice: transformers' plain
 * attention, whose numbers are the reference, adds them to the mask and again to the scores (its
 * fused attention adds them once). */
static ob_status derive_alibi(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    float *slope = alibi_slopes(b->arena, hp->heads[0], 8);
    if (!slope) return error_memory(error, "position biases", hp->heads[0]);
    for (uint32_t h = 0; h < hp->heads[0]; h++) slope[h] *= 2 * hp->attention_scale;
    hp->alibi = slope;
    ob_status s = rope_read_default(b, error);
    hp->rope.freq = NULL; /* its keys are there and mean nothing then */
    return s;
}

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    if (b->hp->context == 0) b->hp->context = 2048; /* older files have no key */
    decoder_ffn_times(b, 4);
    ob_status s = derive_form(b, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    return build_whole(b, "alibi") ? derive_alibi(b, error) : rope_read_default(b, error);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(
        b, x, &(struct decoder_args){.parallel = build_whole(b, "parallel") != 0});
}

const struct recipe model_falcon = {
    .family = "falcon",
    .gguf = "falcon",
    .model_type = "falcon",
    .hf_class = "FalconForCausalLM",
    .roots = "transformer.",
    .act = "gelu",
    .act_key = "activation",
    KEYS(decoder_keys, keys),
    TENSORS(tensors, norms, decoder_gguf_qkv),
    .derive = derive,
    .layer = layer,
};
