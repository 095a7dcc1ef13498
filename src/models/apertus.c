/* SPDX-License-Identifier: Apache-2.0
 * apertus.c: ApertusForCausalLM: norms of q and k, and a plain MLP by xIELU, whose slopes each
 * layer has learned. Apertus1p5TextForCausalLM also embeds images and sounds, tokens beyond those
 * it writes. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key written[] = {DECODER_WRITTEN("output_vocab_size"), {0}};

#define SLOPE(name_)                                                                             \
    VECTOR("blk.{i}.xielu." name_, "{m}layers.{i}.mlp.act_fn." name_, "1", REQUIRED,             \
           .gguf_key = "xielu." name_)

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.attention_layernorm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.feedforward_layernorm.weight", "width",
           REQUIRED),
    SLOPE("alpha_p"),
    SLOPE("alpha_n"),
    SLOPE("beta"),
    SLOPE("eps"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct str act = STR_LIT("xielu");
    build_str(b, NULL, "hidden_act", &act);
    if (!str_is(act, "xielu"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "hidden_act", "hidden_act", error,
                            "\"%.*s\" is not \"xielu\"", STR_ARG(act));
    ob_status s = decoder_sizes(b, error);
    return s == OB_OK ? rope_read_base(b, 12000000, error) : s;
}

static ob_status derive_wide(struct build *b, ob_error *error) {
    ob_status s = decoder_written(b, error);
    return s == OB_OK ? derive(b, error) : s;
}

static float slope(struct build *b, const char *name) {
    float value;
    memcpy(&value, build_weight(b, name)->data, sizeof value); /* vectors are F32 */
    return value;
}

static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

static value_id mlp(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    float beta = slope(b, "xielu.beta");
    struct xielu xielu = {.above = softplus(slope(b, "xielu.alpha_p")),
                          .below = beta + softplus(slope(b, "xielu.alpha_n")),
                          .beta = beta,
                          .eps = slope(b, "xielu.eps")};
    value_id h = graph_xielu(b->g, block_linear(b, x, "ffn_up"), &xielu);
    return block_linear(b, h, "ffn_down");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mlp = mlp});
}

const struct recipe model_apertus = {
    .family = "apertus",
    .gguf = "apertus",
    .model_type = "apertus",
    .hf_class = "ApertusForCausalLM",
    .act_key = "",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_plain_mlp),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_apertus1p5_text = {
    .family = "apertus1p5_text",
    .model_type = "apertus1p5_text",
    .hf_class = "Apertus1p5TextForCausalLM",
    .act_key = "",
    KEYS(decoder_keys, decoder_bias_keys, written),
    TENSORS(decoder_wide_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_plain_mlp),
    .derive = derive_wide,
    .layer = layer,
};
