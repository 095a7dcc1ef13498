/* SPDX-License-Identifier: Apache-2.0
 * roformer.c: RoFormerModel (arXiv 2104.09864), its classifier and RoFormerForCausalLM: BERT with
 * rotary pairs in place of learned positions; of values, too, where rotary_value says so. */
#include "models/bert.h"
#include "models/blocks/rope.h"

static const struct tensor embeddings[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "embd", REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "embd",
           OPTIONAL, .needed = "by_config"),
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "embd"),
    BERT_WIDE("{m}embeddings_project"),
    KNOWN("sinusoids", "{m}encoder.embed_positions.weight", "sines and cosines are computed"),
    {0},
};

static const struct tensor head_tensors[] = {
    ENCODER_SCORES_DENSE("classifier.dense"),
    ENCODER_SCORES("classifier.out_proj"),
    KNOWN("mlm", "cls.*", "words in gaps are not guessed"),
    {0},
};

static const struct key keys[] = {
    WHOLE("turns_values", NULL, "rotary_value", OPTIONAL, 0, 0, 1),
    {0},
};

static ob_status read_rope(struct build *b, ob_error *error) {
    return rope_read(b, &(struct rope_source){.hf = "rope_parameters", .fixed_base = 10000},
                     &b->hp->rope, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = bert_sizes(b, "classifier.out_proj.weight", error);
    return s == OB_OK ? read_rope(b, error) : s;
}

static ob_status derive_causal(struct build *b, ob_error *error) {
    ob_status s = bert_causal_derive(b, error);
    return s == OB_OK ? read_rope(b, error) : s;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x,
                         &(struct decoder_args){.interleaved = true,
                                                .turns_values = build_whole(b, "turns_values")});
}

static value_id causal_layer(struct build *b, value_id x) {
    x = layer(b, x);
    return b->layer + 1 < b->hp->layers ? x : encoder_causal_head(b, x);
}

static value_id head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, b->hp->act);
}

const struct recipe model_roformer = {
    .family = "roformer",
    .model_type = "roformer",
    .hf_class = "RoFormerModel",
    .roots = "roformer.|",
    KEYS(decoder_keys, encoder_keys, bert_keys, keys),
    TENSORS(embeddings, bert_layers, head_tensors),
    .act = "gelu",
    .derive = derive,
    .layer = layer,
    .head = head,
};

const struct recipe model_roformer_causal = {
    .family = "roformer-causal",
    .model_type = "roformer",
    .when = "is_decoder",
    .hf_class = "RoFormerForCausalLM",
    .roots = "roformer.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys, keys),
    TENSORS(embeddings, bert_layers, bert_causal_head),
    .act = "gelu",
    .derive = derive_causal,
    .layer = causal_layer,
};
