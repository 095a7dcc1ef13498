/* SPDX-License-Identifier: Apache-2.0
 * eurobert.c: EuroBertModel (arXiv 2503.05500) and its classifier: Llama's layer, in which tokens
 * see later ones. */
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/rope.h"

static const struct tensor head_tensors[] = {
    ENCODER_SCORES_DENSE("dense"),
    ENCODER_SCORES("classifier"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct str pooling = STR_LIT("late");
    ob_status s = encoder_sizes(b, "cls.output.weight", "classifier.weight", error);
    b->hp->norm = NORM_RMS;
    if (s == OB_OK) s = rope_read_default(b, error);
    if (s != OB_OK) return s;
    build_str(b, NULL, "classifier_pooling", &pooling);
    bool bos = str_is(pooling, "bos"), mean = str_is(pooling, "mean");
    if (!bos && !mean && !str_is(pooling, "late"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "classifier_pooling", error,
                            "pooling \"%.*s\" is not known", STR_ARG(pooling));
    s = build_set(b, "head_first", bos, error);
    return s == OB_OK ? build_set(b, "head_late", !bos && !mean, error) : s;
}

/* late: the mean of what the activation gives, of which the scores are a linear function. */
static value_id head(struct build *b, value_id x) {
    struct weight *dense = build_global(b, "cls.weight"),
                  *out = build_global(b, "cls.output.weight");
    if (!dense || !out) return NO_VALUE;
    if (build_whole(b, "head_late") == 0)
        return encoder_head(b, x, build_whole(b, "head_first") ? POOL_FIRST : POOL_MEAN,
                            ACT_GELU_ERF);
    x = graph_act(b->g, graph_linear1(b->g, x, dense, build_global(b, "cls.bias")), ACT_GELU_ERF);
    return graph_linear1(b->g, graph_pool(b->g, x, POOL_MEAN), out,
                         build_global(b, "cls.output.bias"));
}

const struct recipe model_eurobert = {
    .family = "eurobert",
    .gguf = "eurobert",
    .model_type = "eurobert",
    .hf_class = "EuroBertModel",
    .roots = "model.|",
    KEYS(decoder_keys, decoder_bias_keys, encoder_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp, decoder_mlp_biases, head_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
    .head = head,
};
