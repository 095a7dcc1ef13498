/* SPDX-License-Identifier: Apache-2.0
 * cohere2_moe.c: Cohere2MoeForCausalLM: Cohere's parallel layer with a mixture of experts, whose
 * sum is averaged with the shared ones; windows, of whose layers alone q and k turn, and of dense
 * ones if the file says so. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    REAL("logit_scale", "{arch}.logit_scale", "logit_scale", OPTIONAL, 1, 0, 0),
    {"{arch}.feed_forward_length", "prefix_dense_intermediate_size|intermediate_size", KEY_LAYERS,
     offsetof(struct hparams, ffn), REQUIRED, 0, 1, 1 << 24, NULL},
    {"{arch}.expert_feed_forward_length", "intermediate_size", KEY_U32,
     offsetof(struct hparams, expert_ffn), REQUIRED, 0, 1, 1 << 24, NULL},
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    {0},
};

/* Whether config.json's word is one of two. */
static ob_status read_word(struct build *b, const char *key, const char *yes, const char *no,
                           bool *out, ob_error *error) {
    struct str word;
    if (!build_str(b, NULL, key, &word)) return OB_OK;
    *out = str_is(word, yes);
    if (*out || str_is(word, no)) return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error, "\"%.*s\" is not \"%s\" or \"%s\"",
                        STR_ARG(word), yes, no);
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool average = true, sigmoid = true;
    uint32_t dense_period = 1;
    hp->norm = build_has(b, "{arch}.attention.layer_norm_rms_epsilon", "rms_norm_eps") ? NORM_RMS
                                                                                       : NORM_LAYER;
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK)
        s = read_word(b, "shared_expert_combination_strategy", "average", "sum", &average, error);
    if (s == OB_OK)
        s = read_word(b, "expert_selection_fn", "sigmoid", "softmax", &sigmoid, error);
    if (s == OB_OK) s = build_set(b, "average", average, error);
    if (s != OB_OK) return s;
    hp->logit_scale = (float)build_number(b, "logit_scale");
    decoder_window_period(b, 4, false);
    decoder_rope_in_windows(b);
    build_u32(b, NULL, "prefix_dense_sliding_window_pattern", &dense_period);
    s = moe_sizes(b, &(struct route_args){.score = ROUTE_SIGMOID}, error);
    if (!sigmoid) hp->route.score = ROUTE_SOFTMAX_CHOSEN, hp->route.normalize = false;
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++)
        if (!hp->experts[i] && dense_period == 1) hp->no_rope[i] = false;
    return s;
}

static value_id mlp(struct build *b, value_id x, const struct decoder_args *args) {
    value_id y = decoder_mlp_block(b, x, args);
    bool shared = build_weight(b, "ffn_up_shexp.weight");
    return shared && build_whole(b, "average") ? graph_scale(b->g, y, 0.5f) : y;
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(
        b, x, &(struct decoder_args){.interleaved = true, .parallel = true, .mlp = mlp});
}

const struct recipe model_cohere2_moe = {
    .family = "cohere2moe",
    .gguf = "cohere2moe",
    .model_type = "cohere2_moe",
    .hf_class = "Cohere2MoeForCausalLM",
    .foreign = "rope_scaling|routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases, decoder_mlp,
            moe_tensors, moe_shared_tensors),
    .derive = derive,
    .layer = layer,
};
