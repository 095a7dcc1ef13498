/* SPDX-License-Identifier: Apache-2.0
 * modernbert.c: ModernBertModel (arXiv 2412.13663) and its classifier: norms before a sub-layer,
 * but none before the first attention, gated MLPs, layers that see a window of tokens around each,
 * with a rotary base of their own. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {"{arch}.attention.sliding_window", "local_attention", KEY_U32,
     offsetof(struct hparams, window_size), OPTIONAL, 128, 0, 0, NULL},
    WHOLE("every", "{arch}.attention.sliding_window_pattern", "global_attn_every_n_layers",
          OPTIONAL, 3, 1, 4096),
    {0},
};

#define LAYER "{m}layers.{i}."
/* A norm or dense layer with a bias in some models. */
#define BOTH(ours, theirs, n, need)                               \
    VECTOR(ours ".weight", theirs ".weight", n, need),            \
    VECTOR(ours ".bias", theirs ".bias", n, OPTIONAL)

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.tok_embeddings.weight", "vocab", "width", REQUIRED),
    BOTH("token_embd_norm", "{m}embeddings.norm", "width", REQUIRED),
    BOTH("output_norm", "{m}final_norm", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", LAYER "attn_norm.weight", "width", OPTIONAL,
           .needed = "is_later"),
    VECTOR("blk.{i}.attn_norm.bias", LAYER "attn_norm.bias", "width", OPTIONAL),
    MATRIX("blk.{i}.attn_q.weight", LAYER "attn.Wqkv.weight", "heads*k_dim", "width", REQUIRED,
           .from_hf = Q_OF_QKV),
    VECTOR("blk.{i}.attn_q.bias", LAYER "attn.Wqkv.bias", "heads*k_dim", OPTIONAL,
           .from_hf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", LAYER "attn.Wqkv.weight", "kv_heads*k_dim", "width", REQUIRED,
           .from_hf = K_OF_QKV),
    VECTOR("blk.{i}.attn_k.bias", LAYER "attn.Wqkv.bias", "kv_heads*k_dim", OPTIONAL,
           .from_hf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", LAYER "attn.Wqkv.weight", "kv_heads*v_dim", "width", REQUIRED,
           .from_hf = V_OF_QKV),
    VECTOR("blk.{i}.attn_v.bias", LAYER "attn.Wqkv.bias", "kv_heads*v_dim", OPTIONAL,
           .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", LAYER "attn.Wo.weight", "width", "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", LAYER "attn.Wo.bias", "width", OPTIONAL),
    BOTH("blk.{i}.ffn_norm", LAYER "mlp_norm", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", LAYER "mlp.Wi.weight", "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO, .gguf = "blk.{i}.ffn_up.weight", .from_gguf = GATE_OF_TWO),
    VECTOR("blk.{i}.ffn_gate.bias", LAYER "mlp.Wi.bias", "ffn", OPTIONAL, .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", LAYER "mlp.Wi.weight", "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO, .from_gguf = UP_OF_TWO),
    VECTOR("blk.{i}.ffn_up.bias", LAYER "mlp.Wi.bias", "ffn", OPTIONAL, .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", LAYER "mlp.Wo.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", LAYER "mlp.Wo.bias", "width", OPTIONAL),
    MATRIX("cls.weight", "head.dense.weight", "width", "width", OPTIONAL,
           .needed = "by_config*labels"),
    VECTOR("cls.bias", "head.dense.bias", "width", OPTIONAL),
    VECTOR("cls.norm.weight", "head.norm.weight", "width", OPTIONAL,
           .needed = "by_config*labels"),
    VECTOR("cls.norm.bias", "head.norm.bias", "width", OPTIONAL),
    ENCODER_SCORES("classifier"),
    KNOWN("mlm", "decoder.*", "words in gaps are not guessed"),
    {0},
};

/* In newer files by name, in others every so many layers sees all tokens. */
static void choose_windows(struct build *b) {
    if (decoder_layer_types(b)) return;
    for (uint32_t i = 0; i < b->hp->layers; i++)
        b->hp->window[i] = i % build_whole(b, "every") ? b->hp->window_size : 0;
}

/* How the classifier pools (a GGUF: 1 by the mean), and its activation. */
static ob_status read_head(struct build *b, ob_error *error) {
    struct str act = STR_LIT("gelu"), pooling = STR_LIT("cls");
    enum act_kind kind;
    uint32_t type = 1;
    build_u32(b, "{arch}.classifier.pooling_type", NULL, &type);
    build_str(b, NULL, "classifier_activation", &act);
    build_str(b, NULL, "classifier_pooling", &pooling);
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    bool mean = gguf ? type == 1 : str_is(pooling, "mean");
    if (!mean && (gguf ? type != 2 : !str_is(pooling, "cls")))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.classifier.pooling_type",
                            "classifier_pooling", error, "is neither cls nor mean");
    if (!build_act_named(act, &kind))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "classifier_activation", error,
                            "activation \"%.*s\" is not known", STR_ARG(act));
    ob_status s = build_set(b, "head_mean", mean, error);
    return s == OB_OK ? build_set(b, "head_act", kind, error) : s;
}

static ob_status derive(struct build *b, ob_error *error) {
    struct rope_source all = {.hf = "rope_parameters.full_attention",
                              .base_key_hf = "global_rope_theta",
                              .base_key_gguf = "{arch}.rope.freq_base",
                              .base = 160000,
                              .scaled = true},
                       near = {.hf = "rope_parameters.sliding_attention",
                               .base_key_hf = "local_rope_theta",
                               .base_key_gguf = "{arch}.rope.freq_base_swa",
                               .base = 10000,
                               .scaled = true};
    ob_status s = encoder_sizes(b, "cls.output.weight", "classifier.weight", error);
    if (s == OB_OK) s = rope_read(b, &all, &b->hp->rope, error);
    if (s == OB_OK) s = rope_read(b, &near, &b->hp->rope_window, error);
    if (s == OB_OK) choose_windows(b);
    return s == OB_OK ? read_head(b, error) : s;
}

/* The same dense layer and norm belong to the head that guesses words, which has no classes. */
static value_id head(struct build *b, value_id x) {
    if (!build_global(b, "cls.output.weight")) return NO_VALUE;
    return encoder_head(b, x, build_number(b, "head_mean") > 0 ? POOL_MEAN : POOL_FIRST,
                        (enum act_kind)build_whole(b, "head_act"));
}

const struct recipe model_modernbert = {
    .family = "modernbert",
    .gguf = "modern-bert",
    .model_type = "modernbert",
    .hf_class = "ModernBertModel",
    .roots = "|model.",
    KEYS(decoder_keys, encoder_keys, keys),
    TENSORS(tensors, decoder_gguf_qkv),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = head,
};
