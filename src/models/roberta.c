/* SPDX-License-Identifier: Apache-2.0
 * roberta.c: RobertaModel (arXiv 1907.11692): BERT whose positions are counted from the row after
 * the padding token's. llama.cpp's converter cuts the rows before off and writes a bert. */
#include "models/bert.h"
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    WHOLE("padding", NULL, "pad_token_id", OPTIONAL, 1, 0, 65536),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions",
           "width", REQUIRED),
    MATRIX("cls.weight", "{m}pooler.dense.weight|classifier.dense.weight", "width", "width",
           OPTIONAL),
    VECTOR("cls.bias", "{m}pooler.dense.bias|classifier.dense.bias", "width", OPTIONAL),
    MATRIX("cls.output.weight", "classifier.out_proj.weight", "labels", "width", OPTIONAL),
    VECTOR("cls.output.bias", "classifier.out_proj.bias", "labels", OPTIONAL),
    KNOWN("mlm", "lm_head.*", "words in gaps are not guessed"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t before = build_whole(b, "padding") + 1;
    if (hp->context > 0 && hp->context <= before)
        return build_refuse(b, OB_ERR_FORMAT, "", "max_position_embeddings", error,
                            "%u positions, of which the first %u are not used", hp->context,
                            before);
    ob_status s = build_set(b, "positions", hp->context, error);
    if (hp->context > 0) hp->context -= before;
    hp->position_offset = (int32_t)before;
    if (s == OB_OK) s = encoder_sizes(b, "", "classifier.out_proj.weight", error);
    return s == OB_OK ? bert_refuse(b, error) : s;
}

const struct recipe model_roberta = {
    .family = "roberta",
    .model_type = "roberta",
    .hf_class = "RobertaModel",
    .roots = "roberta.|",
    KEYS(decoder_keys, encoder_keys, keys),
    TENSORS(bert_embeddings, bert_layers, tensors),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = bert_head,
};
