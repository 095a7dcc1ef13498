/* SPDX-License-Identifier: Apache-2.0
 * megatron_bert.c: MegatronBertModel (arXiv 1909.08053) and MegatronBertForCausalLM: BERT with the
 * norms before a sub-layer and one at the end, none of the embeddings. */
#include "models/bert.h"

#define LAYER "{m}encoder.layer.{i}."

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "embd", REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "embd",
           OPTIONAL, .needed = "by_config"),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions", "embd",
           REQUIRED),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    ENCODER_NORMS_BEFORE(LAYER "attention.ln", LAYER "ln"),
    {0},
};
static const struct tensor last[] = {
    ENCODER_NORM("output_norm", "{m}encoder.ln", "width"),
    {0},
};
static const struct tensor before_head[] = {
    ENCODER_NORM("last_norm", "{m}encoder.ln", "width"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    return bert_sizes(b, "classifier.weight", error);
}

const struct recipe model_megatron_bert = {
    .family = "megatron-bert",
    .model_type = "megatron-bert",
    .hf_class = "MegatronBertModel",
    .roots = "bert.|",
    KEYS(decoder_keys, encoder_keys, bert_keys),
    TENSORS(tensors, bert_dense, last, bert_head_tensors),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = bert_head,
};

const struct recipe model_megatron_bert_causal = {
    .family = "megatron-bert-causal",
    .model_type = "megatron-bert",
    .when = "is_decoder",
    .hf_class = "MegatronBertForCausalLM",
    .roots = "bert.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys),
    TENSORS(tensors, bert_dense, before_head, bert_causal_head),
    .act = "gelu",
    .derive = bert_causal_derive,
    .layer = encoder_causal_layer,
};
