/* SPDX-License-Identifier: Apache-2.0
 * bert.c: BertModel (arXiv 1810.04805), its classifiers and BertLMHeadModel: learned positions,
 * norms on the sums, biases everywhere. ErnieModel adds vectors of tasks, of which a text has the
 * first; BertGenerationDecoder has no types and no head but the logits. In GGUF also RoBERTa and
 * DistilBERT, which llama.cpp's converter writes so. */
#include "models/bert.h"

#define LAYER "{m}encoder.layer.{i}."

const struct key bert_keys[] = {
    WHOLE("embd", NULL, "embedding_size|input_embedding_size", OPTIONAL, 0, 0, 1 << 20),
    {0},
};

const struct tensor bert_embeddings[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "embd", REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "embd",
           OPTIONAL, .needed = "by_config"),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions", "embd",
           REQUIRED, .from_hf = "part(1,before+positions,before)"),
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "embd"),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    {0},
};

#define DENSE                                                                             \
    ENCODER_LAYER(LAYER "attention.self.query", LAYER "attention.self.key",               \
                  LAYER "attention.self.value", LAYER "attention.output.dense",           \
                  LAYER "intermediate.dense", LAYER "output.dense")
const struct tensor bert_dense[] = {
    DENSE,
    {0},
};

const struct tensor bert_layers[] = {
    DENSE,
    ENCODER_NORMS_AFTER(LAYER "attention.output.LayerNorm", LAYER "output.LayerNorm"),
    {0},
};

const struct tensor bert_head_tensors[] = {
    ENCODER_DENSE("cls", "{m}pooler.dense", "width", "width", OPTIONAL),
    ENCODER_SCORES("classifier"),
    KNOWN("mlm", "cls.*", "words in gaps are not guessed"),
    {0},
};

const struct tensor bert_causal_head[] = {
    ENCODER_DENSE("head", "cls.predictions.transform.dense", "embd", "width", REQUIRED),
    ENCODER_NORM("output_norm", "cls.predictions.transform.LayerNorm", "embd"),
    MATRIX("output.weight", "cls.predictions.decoder.weight", "vocab", "embd", OPTIONAL),
    VECTOR("output.bias", "cls.predictions.bias|cls.predictions.decoder.bias", "vocab", REQUIRED),
    KNOWN("pairs", "cls.seq_relationship.*", "pairs of texts are not judged"),
    KNOWN("twin", "cls.predictions.decoder.bias", "is cls.predictions.bias"),
    {0},
};

static const struct tensor tasks[] = {
    MATRIX("task_types.weight", "{m}embeddings.task_type_embeddings.weight",
           "tasks*task_types", "width",
           OPTIONAL),
    {0},
};

static const struct key task_keys[] = {
    WHOLE("task_types", NULL, "task_type_vocab_size", OPTIONAL, 3, 0, 65536),
    WHOLE("tasks", NULL, "use_task_id", OPTIONAL, 1, 0, 1), /* older files do not say it */
    {0},
};

static const struct tensor generation[] = {
    MATRIX("output.weight", "lm_head.decoder.weight", "vocab", "embd", OPTIONAL),
    VECTOR("output.bias", "lm_head.bias|lm_head.decoder.bias", "vocab", REQUIRED),
    KNOWN("twin", "lm_head.decoder.bias", "is lm_head.bias"),
    {0},
};

static ob_status refuse_positions(struct build *b, ob_error *error) {
    struct str positions;
    if (!build_str(b, NULL, "position_embedding_type", &positions) ||
        str_is(positions, "absolute"))
        return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, "", "position_embedding_type", error,
                        "positions \"%.*s\" are not supported", STR_ARG(positions));
}

static ob_status widths(struct build *b, ob_error *error) {
    encoder_own_keys(b);
    double embd = build_number(b, "embd");
    ob_status s = refuse_positions(b, error);
    if (embd <= 0) embd = b->hp->width;
    if (s == OB_OK) s = build_set(b, "embd", embd, error);
    if (s == OB_OK) s = build_set(b, "projects", embd != b->hp->width, error);
    return s == OB_OK ? bert_skip_positions(b, 0, error) : s;
}

ob_status bert_skip_positions(struct build *b, uint32_t before, ob_error *error) {
    uint32_t rows = b->hp->context;
    if (rows > 0 && rows <= before)
        return build_refuse(b, OB_ERR_FORMAT, "", "max_position_embeddings", error,
                            "%u positions, of which the first %u are not used", rows, before);
    if (rows > 0) b->hp->context = rows - before;
    ob_status s = build_set(b, "before", before, error);
    return s == OB_OK ? build_set(b, "positions", b->hp->context, error) : s;
}

ob_status bert_sizes(struct build *b, const char *classes, ob_error *error) {
    bool decoder = false;
    ob_status s = widths(b, error);
    if (s == OB_OK) s = build_flag(b, NULL, "is_decoder", &decoder, error);
    if (s == OB_OK && decoder)
        s = build_refuse(b, OB_ERR_UNSUPPORTED, "is_decoder", "is_decoder", error,
                         "an encoder used as a decoder is not supported");
    return s == OB_OK ? encoder_sizes(b, "cls.output.weight", classes, error) : s;
}

ob_status bert_causal_derive(struct build *b, ob_error *error) {
    ob_status s = widths(b, error);
    b->hp->head_act = b->hp->act;
    return s == OB_OK ? encoder_causal_sizes(b, error) : s;
}

static ob_status derive(struct build *b, ob_error *error) {
    return bert_sizes(b, "classifier.weight", error);
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
    KEYS(decoder_keys, encoder_keys, bert_keys),
    TENSORS(bert_embeddings, bert_layers, bert_head_tensors, decoder_gguf_qkv),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = bert_head,
};

const struct recipe model_bert_causal = {
    .family = "bert-causal",
    .model_type = "bert",
    .when = "is_decoder",
    .hf_class = "BertLMHeadModel",
    .roots = "bert.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys),
    TENSORS(bert_embeddings, bert_layers, bert_causal_head),
    .act = "gelu",
    .derive = bert_causal_derive,
    .layer = encoder_causal_layer,
};

static ob_status derive_generation(struct build *b, ob_error *error) {
    ob_status s = bert_causal_derive(b, error);
    return s == OB_OK ? build_set(b, "types", 0, error) : s;
}

const struct recipe model_bert_generation = {
    .family = "bert-generation",
    .model_type = "bert-generation",
    .when = "is_decoder",
    .hf_class = "BertGenerationDecoder",
    .roots = "bert.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys),
    TENSORS(bert_embeddings, bert_layers, generation),
    .act = "gelu",
    .derive = derive_generation,
    .layer = encoder_causal_layer,
};

const struct recipe model_ernie = {
    .family = "ernie",
    .model_type = "ernie",
    .hf_class = "ErnieModel",
    .roots = "ernie.|",
    KEYS(decoder_keys, encoder_keys, bert_keys, task_keys),
    TENSORS(bert_embeddings, tasks, bert_layers, bert_head_tensors),
    .act = "gelu",
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = bert_head,
};

const struct recipe model_ernie_causal = {
    .family = "ernie-causal",
    .model_type = "ernie",
    .when = "is_decoder",
    .hf_class = "ErnieForCausalLM",
    .roots = "ernie.",
    KEYS(decoder_keys, encoder_causal_keys, bert_keys, task_keys),
    TENSORS(bert_embeddings, tasks, bert_layers, bert_causal_head),
    .act = "gelu",
    .derive = bert_causal_derive,
    .layer = encoder_causal_layer,
};
