/* SPDX-License-Identifier: Apache-2.0
 * bert.c: BertModel (arXiv 1810.04805) and its classifiers: learned positions, norms on the sums,
 * biases everywhere. In GGUF also RoBERTa and DistilBERT, which llama.cpp's converter writes so. */
#include "models/bert.h"

#include "models/blocks/decoder.h"

#define LAYER "{m}encoder.layer.{i}."

const struct tensor bert_embeddings[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "width",
           OPTIONAL),
    VECTOR("token_embd_norm.weight",
           "{m}embeddings.LayerNorm.weight|{m}embeddings.LayerNorm.gamma", "width", REQUIRED),
    VECTOR("token_embd_norm.bias", "{m}embeddings.LayerNorm.bias|{m}embeddings.LayerNorm.beta",
           "width", REQUIRED),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    {0},
};

const struct tensor bert_layers[] = {
    MATRIX("blk.{i}.attn_q.weight", LAYER "attention.self.query.weight", "heads*k_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", LAYER "attention.self.query.bias", "heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", LAYER "attention.self.key.weight", "heads*k_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", LAYER "attention.self.key.bias", "heads*k_dim", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", LAYER "attention.self.value.weight", "heads*v_dim", "width",
           REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", LAYER "attention.self.value.bias", "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", LAYER "attention.output.dense.weight", "width",
           "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", LAYER "attention.output.dense.bias", "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.weight",
           LAYER "attention.output.LayerNorm.weight|" LAYER "attention.output.LayerNorm.gamma",
           "width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.bias",
           LAYER "attention.output.LayerNorm.bias|" LAYER "attention.output.LayerNorm.beta",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", LAYER "intermediate.dense.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", LAYER "intermediate.dense.bias", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", LAYER "output.dense.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", LAYER "output.dense.bias", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.weight",
           LAYER "output.LayerNorm.weight|" LAYER "output.LayerNorm.gamma", "width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.bias",
           LAYER "output.LayerNorm.bias|" LAYER "output.LayerNorm.beta", "width", REQUIRED),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions",
           "width", REQUIRED),
    MATRIX("cls.weight", "{m}pooler.dense.weight", "width", "width", OPTIONAL),
    VECTOR("cls.bias", "{m}pooler.dense.bias", "width", OPTIONAL),
    MATRIX("cls.output.weight", "classifier.weight", "labels", "width", OPTIONAL),
    VECTOR("cls.output.bias", "classifier.bias", "labels", OPTIONAL),
    KNOWN("mlm", "cls.*", "words in gaps are not guessed"),
    {0},
};

ob_status bert_refuse(struct build *b, ob_error *error) {
    struct str positions;
    bool decoder = false;
    ob_status s = build_flag(b, NULL, "is_decoder", &decoder, error);
    if (s != OB_OK) return s;
    if (decoder)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "is_decoder", "is_decoder", error,
                            "an encoder used as a decoder is not supported");
    if (build_str(b, NULL, "position_embedding_type", &positions) &&
        !str_is(positions, "absolute"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "position_embedding_type", error,
                            "positions \"%.*s\" are not supported", STR_ARG(positions));
    return OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = build_set(b, "positions", b->hp->context, error);
    if (s == OB_OK) s = encoder_sizes(b, "cls.output.weight", "classifier.weight", error);
    return s == OB_OK ? bert_refuse(b, error) : s;
}

value_id bert_head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, ACT_TANH);
}

const struct recipe model_bert = {
    .family = "bert",
    .gguf = "bert",
    .model_type = "bert",
    .hf_class = "BertModel",
    .roots = "bert.|",
    KEYS(decoder_keys, encoder_keys),
    TENSORS(bert_embeddings, bert_layers, tensors, decoder_gguf_qkv),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = bert_head,
};
