/* SPDX-License-Identifier: Apache-2.0
 * gte.c: GteModel (arXiv 2407.19669) and JinaEmbeddingsV3Model (arXiv 2409.10173), with their
 * classifiers: BERT with rotary positions in place of learned ones. GTE's MLP is gated, and only
 * its last matrix has a bias; Jina's is BERT's. */
#include "models/bert.h"
#include "models/blocks/rope.h"

#define GTE "{m}encoder.layer.{i}."
#define JINA "{m}encoder.layers.{i}."
/* q, k and v in one tensor, all with biases. */
#define PART_OF(ours, theirs, rows, part)                                                    \
    MATRIX(ours ".weight", theirs ".weight", rows, "width", REQUIRED, .from_hf = (part)),   \
    VECTOR(ours ".bias", theirs ".bias", rows, REQUIRED, .from_hf = (part))
#define PARTS(theirs)                                                    \
    PART_OF("blk.{i}.attn_q", theirs, "heads*k_dim", Q_OF_QKV),          \
    PART_OF("blk.{i}.attn_k", theirs, "kv_heads*k_dim", K_OF_QKV),       \
    PART_OF("blk.{i}.attn_v", theirs, "kv_heads*v_dim", V_OF_QKV)

static const struct tensor embeddings[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "width",
           REQUIRED),
    KNOWN("mlm", "lm_head.*", "words in gaps are not guessed"),
    {0},
};

static const struct tensor gte[] = {
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "width"),
    PARTS(GTE "attention.qkv_proj"),
    ENCODER_DENSE("blk.{i}.attn_output", GTE "attention.o_proj", "width", "heads*v_dim", REQUIRED),
    ENCODER_NORMS_AFTER(GTE "attn_ln", GTE "mlp_ln"),
    MATRIX("blk.{i}.ffn_up.weight", GTE "mlp.up_gate_proj.weight", "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO /* the first half */),
    MATRIX("blk.{i}.ffn_gate.weight", GTE "mlp.up_gate_proj.weight", "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    ENCODER_DENSE("blk.{i}.ffn_down", GTE "mlp.down_proj", "width", "ffn", REQUIRED),
    {0},
};

static const struct tensor jina[] = {
    ENCODER_NORM("token_embd_norm", "{m}emb_ln", "width"),
    PARTS(JINA "mixer.Wqkv"),
    ENCODER_DENSE("blk.{i}.attn_output", JINA "mixer.out_proj", "width", "heads*v_dim", REQUIRED),
    ENCODER_NORMS_AFTER(JINA "norm1", JINA "norm2"),
    ENCODER_DENSE("blk.{i}.ffn_up", JINA "mlp.fc1", "ffn", "width", REQUIRED),
    ENCODER_DENSE("blk.{i}.ffn_down", JINA "mlp.fc2", "width", "ffn", REQUIRED),
    ENCODER_DENSE("cls", "{m}pooler.dense", "width", "width", OPTIONAL),
    ENCODER_SCORES_DENSE("classifier.dense"),
    ENCODER_SCORES("classifier.out_proj"),
    {0},
};

static ob_status derive(struct build *b, const char *classes, float base, ob_error *error) {
    ob_status s = encoder_sizes(b, "cls.output.weight", classes, error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters",
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = base,
                                           .scaled = true},
                     &b->hp->rope, error);
}

static ob_status derive_gte(struct build *b, ob_error *error) {
    return derive(b, "classifier.weight", 160000, error);
}

static ob_status derive_jina(struct build *b, ob_error *error) {
    return derive(b, "classifier.out_proj.weight", 20000, error);
}

const struct recipe model_gte = {
    .family = "gte",
    .model_type = "gte",
    .hf_class = "GteModel",
    .roots = "gte.|",
    KEYS(decoder_keys, encoder_keys),
    TENSORS(embeddings, gte, bert_head_tensors),
    .act = "gelu",
    .derive = derive_gte,
    .layer = decoder_plain_layer,
    .head = bert_head,
};

const struct recipe model_jina_embeddings_v3 = {
    .family = "jina_embeddings_v3",
    .gguf = "jina-bert-v3",
    .model_type = "jina_embeddings_v3",
    .hf_class = "JinaEmbeddingsV3Model",
    .roots = "roberta.|",
    KEYS(decoder_keys, encoder_keys),
    TENSORS(embeddings, jina, decoder_gguf_qkv),
    .act = "gelu",
    .derive = derive_jina,
    .layer = decoder_plain_layer,
    .head = bert_head,
};
