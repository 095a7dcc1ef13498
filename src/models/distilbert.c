/* SPDX-License-Identifier: Apache-2.0
 * distilbert.c: DistilBertModel (arXiv 1910.01108): BERT's layers under other names, without types
 * of tokens. llama.cpp's converter writes a bert. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"

#define LAYER "{m}transformer.layer.{i}."

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions",
           "width", REQUIRED),
    VECTOR("token_embd_norm.weight", "{m}embeddings.LayerNorm.weight", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}embeddings.LayerNorm.bias", "width", REQUIRED),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    MATRIX("blk.{i}.attn_q.weight", LAYER "attention.q_lin.weight", "heads*k_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", LAYER "attention.q_lin.bias", "heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", LAYER "attention.k_lin.weight", "heads*k_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", LAYER "attention.k_lin.bias", "heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", LAYER "attention.v_lin.weight", "heads*v_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", LAYER "attention.v_lin.bias", "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", LAYER "attention.out_lin.weight", "width", "heads*v_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", LAYER "attention.out_lin.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.weight", LAYER "sa_layer_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.bias", LAYER "sa_layer_norm.bias", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", LAYER "ffn.lin1.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", LAYER "ffn.lin1.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", LAYER "ffn.lin2.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", LAYER "ffn.lin2.bias", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.weight", LAYER "output_layer_norm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.bias", LAYER "output_layer_norm.bias", "width", REQUIRED),
    MATRIX("cls.weight", "pre_classifier.weight", "width", "width", OPTIONAL),
    VECTOR("cls.bias", "pre_classifier.bias", "width", OPTIONAL),
    MATRIX("cls.output.weight", "classifier.weight", "labels", "width", OPTIONAL),
    VECTOR("cls.output.bias", "classifier.bias", "labels", OPTIONAL),
    KNOWN("mlm", "vocab_*", "words in gaps are not guessed"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->eps = 1e-12f; /* no key: transformers has it as a constant */
    ob_status s = build_set(b, "positions", b->hp->context, error);
    return s == OB_OK ? encoder_sizes(b, "", "classifier.weight", error) : s;
}

static value_id head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, ACT_RELU);
}

const struct recipe model_distilbert = {
    .family = "distilbert",
    .model_type = "distilbert",
    .hf_class = "DistilBertModel",
    .roots = "distilbert.|",
    KEYS(decoder_keys, encoder_keys),
    TENSORS(tensors),
    .act = "gelu",
    .act_key = "activation",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = head,
};
