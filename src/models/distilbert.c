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
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "width"),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    ENCODER_LAYER(LAYER "attention.q_lin", LAYER "attention.k_lin", LAYER "attention.v_lin",
                  LAYER "attention.out_lin", LAYER "ffn.lin1", LAYER "ffn.lin2"),
    ENCODER_NORMS_AFTER(LAYER "sa_layer_norm", LAYER "output_layer_norm"),
    ENCODER_DENSE("cls", "pre_classifier", "width", "width", OPTIONAL),
    ENCODER_SCORES("classifier"),
    KNOWN("mlm", "vocab_*", "words in gaps are not guessed"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    encoder_own_keys(b);
    b->hp->eps = 1e-12f; /* no key: transformers has it as a constant */
    ob_status s = build_set(b, "positions", b->hp->context, error);
    return s == OB_OK ? encoder_sizes(b, "cls.output.weight", "classifier.weight", error) : s;
}

static value_id head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, ACT_RELU);
}

const struct recipe model_distilbert = {
    .family = "distilbert",
    .written_as = "bert",
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
