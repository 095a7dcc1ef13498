/* SPDX-License-Identifier: Apache-2.0
 * roberta.c: RobertaModel (arXiv 1907.11692) and the classes of the same mathematics, encoders and
 * causal: BERT whose positions are counted from the row after the padding token's. RoBERTa-PreLayer
 * Norm and XLM-RoBERTa-XL have their norms before a sub-layer and one at the end. llama.cpp's
 * converter cuts the rows before off and writes a bert. (transformers gives a padding token in the
 * text no position; here it counts, as nothing writes one.) */
#include "models/roberta.h"

#define LAYER "{m}encoder.layer.{i}."

const struct key roberta_keys[] = {
    WHOLE("embd", NULL, "embedding_size", OPTIONAL, 0, 0, 1 << 20),
    WHOLE("padding", NULL, "pad_token_id", OPTIONAL, 1, 0, 65536),
    {0},
};

const struct tensor roberta_head_tensors[] = {
    ENCODER_DENSE("cls", "{m}pooler.dense", "width", "width", OPTIONAL),
    ENCODER_SCORES_DENSE("classifier.dense"),
    ENCODER_SCORES("classifier.out_proj"),
    KNOWN("mlm", "lm_head.*", "words in gaps are not guessed"),
    {0},
};

static const struct tensor causal_head[] = {
    ENCODER_DENSE("head", "lm_head.dense", "width", "width", REQUIRED),
    ENCODER_NORM("output_norm", "lm_head.layer_norm", "width"),
    MATRIX("output.weight", "lm_head.decoder.weight", "vocab", "width", OPTIONAL),
    VECTOR("output.bias", "lm_head.bias|lm_head.decoder.bias", "vocab", REQUIRED),
    KNOWN("twin", "lm_head.decoder.bias", "is lm_head.bias"),
    {0},
};

/* ---- norms before ---- */

static const struct tensor pre_norms[] = {
    ENCODER_NORMS_BEFORE(LAYER "attention.LayerNorm", LAYER "intermediate.LayerNorm"),
    {0},
};
static const struct tensor pre_norm_last[] = {
    ENCODER_NORM("output_norm", "{m}LayerNorm", "width"),
    {0},
};
static const struct tensor pre_norm_before_head[] = {
    ENCODER_NORM("last_norm", "{m}LayerNorm", "width"),
    {0},
};

static const struct tensor xl_embeddings[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "width",
           OPTIONAL, .needed = "by_config"),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions",
           "width", REQUIRED, .from_hf = "part(1,before+positions,before)"),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    ENCODER_NORMS_BEFORE(LAYER "attention.self_attn_layer_norm", LAYER "LayerNorm"),
    {0},
};
static const struct tensor xl_last[] = {
    ENCODER_NORM("output_norm", "{m}encoder.LayerNorm", "width"),
    {0},
};
static const struct tensor xl_before_head[] = {
    ENCODER_NORM("last_norm", "{m}encoder.LayerNorm", "width"),
    {0},
};

/* ---- sizes ---- */

ob_status roberta_derive_padded(struct build *b, uint32_t padding, ob_error *error) {
    ob_status s = bert_sizes(b, "classifier.out_proj.weight", error);
    return s == OB_OK ? bert_skip_positions(b, padding + 1, error) : s;
}

ob_status roberta_derive(struct build *b, ob_error *error) {
    return roberta_derive_padded(b, build_whole(b, "padding"), error);
}

static ob_status derive_causal(struct build *b, ob_error *error) {
    ob_status s = bert_causal_derive(b, error);
    b->hp->head_act = ACT_GELU_ERF;
    return s == OB_OK ? bert_skip_positions(b, build_whole(b, "padding") + 1, error) : s;
}

/* ---- the classes ---- */

#define ENCODER(type, class, root, ...)                                                       \
    .family = type, .model_type = type, .hf_class = class, .roots = root "|",                 \
    KEYS(decoder_keys, encoder_keys, roberta_keys), TENSORS(__VA_ARGS__, roberta_head_tensors), \
    .act = "gelu", .derive = roberta_derive, .layer = decoder_plain_layer, .head = bert_head
#define CAUSAL(type, class, root, ...)                                                        \
    .family = type "-causal", .model_type = type, .when = "is_decoder", .hf_class = class,    \
    .roots = root, KEYS(decoder_keys, encoder_causal_keys, roberta_keys),                     \
    TENSORS(__VA_ARGS__, causal_head), .act = "gelu", .derive = derive_causal,                \
    .layer = encoder_causal_layer

const struct recipe model_camembert = {
    ENCODER("camembert", "CamembertModel", "roberta.", bert_embeddings, bert_layers),
    .written_as = "bert"};
const struct recipe model_camembert_causal = {
    CAUSAL("camembert", "CamembertForCausalLM", "roberta.", bert_embeddings, bert_layers)};

const struct recipe model_data2vec_text = {
    ENCODER("data2vec-text", "Data2VecTextModel", "data2vec_text.", bert_embeddings,
            bert_layers),
    .written_as = "bert"};
const struct recipe model_data2vec_text_causal = {
    CAUSAL("data2vec-text", "Data2VecTextForCausalLM", "data2vec_text.", bert_embeddings,
           bert_layers)};

const struct recipe model_roberta = {
    ENCODER("roberta", "RobertaModel", "roberta.", bert_embeddings, bert_layers),
    .written_as = "bert"};
const struct recipe model_roberta_causal = {
    CAUSAL("roberta", "RobertaForCausalLM", "roberta.", bert_embeddings, bert_layers)};

const struct recipe model_roberta_prelayernorm = {
    ENCODER("roberta-prelayernorm", "RobertaPreLayerNormModel", "roberta_prelayernorm.",
            bert_embeddings, bert_dense, pre_norms, pre_norm_last)};
const struct recipe model_roberta_prelayernorm_causal = {
    CAUSAL("roberta-prelayernorm", "RobertaPreLayerNormForCausalLM", "roberta_prelayernorm.",
           bert_embeddings, bert_dense, pre_norms, pre_norm_before_head)};

const struct recipe model_xlm_roberta = {
    ENCODER("xlm-roberta", "XLMRobertaModel", "roberta.", bert_embeddings, bert_layers),
    .written_as = "bert"};
const struct recipe model_xlm_roberta_causal = {
    CAUSAL("xlm-roberta", "XLMRobertaForCausalLM", "roberta.", bert_embeddings, bert_layers)};

const struct recipe model_xlm_roberta_xl = {
    ENCODER("xlm-roberta-xl", "XLMRobertaXLModel", "roberta.", xl_embeddings, bert_dense,
            xl_last)};
const struct recipe model_xlm_roberta_xl_causal = {
    CAUSAL("xlm-roberta-xl", "XLMRobertaXLForCausalLM", "roberta.", xl_embeddings, bert_dense,
           xl_before_head)};
