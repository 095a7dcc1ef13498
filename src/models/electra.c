/* SPDX-License-Identifier: Apache-2.0
 * electra.c: ElectraModel (arXiv 2003.10555), its classifier and ElectraForCausalLM: BERT whose
 * embeddings may be narrower than the stream and are projected to it. RemBERT (arXiv 2010.12821)
 * has the same, and an output matrix of its own. */
#include "models/bert.h"

static const struct tensor wide[] = {
    BERT_WIDE("{m}embeddings_project"),
    {0},
};

static const struct tensor head_tensors[] = {
    ENCODER_SCORES_DENSE("classifier.dense"),
    ENCODER_SCORES("classifier.out_proj"),
    KNOWN("rtd", "discriminator_predictions.*", "replaced words are not found"),
    KNOWN("mlm", "generator_*", "words in gaps are not guessed"),
    {0},
};

static const struct tensor causal_head[] = {
    ENCODER_DENSE("head", "generator_predictions.dense", "embd", "width", REQUIRED),
    ENCODER_NORM("output_norm", "generator_predictions.LayerNorm", "embd"),
    MATRIX("output.weight", "generator_lm_head.weight", "vocab", "embd", OPTIONAL),
    VECTOR("output.bias", "generator_lm_head.bias", "vocab", REQUIRED),
    {0},
};

static const struct tensor rembert_wide[] = {
    ENCODER_DENSE("token_embd_wide", "{m}encoder.embedding_hidden_mapping_in", "width", "embd",
                  REQUIRED),
    {0},
};

static const struct tensor rembert_causal_head[] = {
    ENCODER_DENSE("head", "cls.predictions.dense", "out_embd", "width", REQUIRED),
    ENCODER_NORM("output_norm", "cls.predictions.LayerNorm", "out_embd"),
    ENCODER_DENSE("output", "cls.predictions.decoder", "vocab", "out_embd", REQUIRED),
    {0},
};

static const struct key rembert_keys[] = {
    WHOLE("out_embd", NULL, "output_embedding_size", OPTIONAL, 1664, 1, 1 << 20),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    return bert_sizes(b, "classifier.out_proj.weight", error);
}

static ob_status derive_rembert(struct build *b, ob_error *error) {
    return bert_sizes(b, "classifier.weight", error);
}

static ob_status derive_causal(struct build *b, ob_error *error) {
    ob_status s = bert_causal_derive(b, error);
    b->hp->head_act = ACT_GELU_ERF;
    return s;
}

static value_id head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, ACT_GELU_ERF);
}

const struct recipe model_electra = {
    .family = "electra",
    .model_type = "electra",
    .hf_class = "ElectraModel",
    .roots = "electra.|",
    KEYS(decoder_keys, encoder_keys, bert_keys),
    TENSORS(bert_embeddings, wide, bert_layers, head_tensors),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = head,
};

const struct recipe model_electra_causal = {
    .family = "electra-causal",
    .model_type = "electra",
    .when = "is_decoder",
    .hf_class = "ElectraForCausalLM",
    .roots = "electra.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys),
    TENSORS(bert_embeddings, wide, bert_layers, causal_head),
    .act = "gelu",
    .derive = derive_causal,
    .layer = encoder_causal_layer,
};

const struct recipe model_rembert = {
    .family = "rembert",
    .model_type = "rembert",
    .hf_class = "RemBertModel",
    .roots = "rembert.|",
    KEYS(decoder_keys, encoder_keys, bert_keys),
    TENSORS(bert_embeddings, rembert_wide, bert_layers, bert_head_tensors),
    .act = "gelu",
    .derive = derive_rembert,
    .layer = decoder_plain_layer,
    .head = bert_head,
};

const struct recipe model_rembert_causal = {
    .family = "rembert-causal",
    .model_type = "rembert",
    .when = "is_decoder",
    .hf_class = "RemBertForCausalLM",
    .roots = "rembert.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys, rembert_keys),
    TENSORS(bert_embeddings, rembert_wide, bert_layers, rembert_causal_head),
    .act = "gelu",
    .derive = bert_causal_derive,
    .layer = encoder_causal_layer,
};
