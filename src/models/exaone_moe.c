/* SPDX-License-Identifier: Apache-2.0
 * exaone_moe.c: ExaoneMoeForCausalLM (K-EXAONE): windows, of whose layers alone q and k turn, norms
 * of q and k, and DeepSeek V3's router. Kolibri1ForCausalLM has norms before and after each
 * sub-layer, and the bias of choice is one of logits; FlintForCausalLM has sinks and no bias. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct tensor kolibri_norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attn_norm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_ffn_norm.weight", "width", REQUIRED),
    {0},
};

static const struct tensor flint_sinks[] = {
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.softmax_offset", "heads",
           REQUIRED),
    {0},
};

static ob_status derive_as(struct build *b, uint32_t period, const struct route_args *router,
                           ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, period, false);
    if (b->hp->window_size) decoder_rope_in_windows(b);
    return moe_sizes(b, router, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID,
                                      .group = ROUTE_GROUP_TOP2,
                                      .normalize = true,
                                      .normalize_eps = 1e-20f};
    return derive_as(b, 4, &router, error);
}

static ob_status derive_kolibri(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID, .bias_to_logits = true};
    return derive_as(b, 5, &router, error);
}

static ob_status derive_flint(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID, .normalize = true};
    struct hparams *hp = b->hp;
    ob_status s = derive_as(b, 4, &router, error);
    if (s != OB_OK || build_has(b, NULL, "layer_types")) return s;
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->window[i] = i < 2 || i % 4 == 1 || i + 1 == hp->layers ? 0 : hp->window_size;
    decoder_rope_in_windows(b);
    return s;
}

#define EXAONE_MOE(norms, ...)                                                                   \
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys),                       \
    TENSORS(decoder_ends, norms, decoder_attention_tensors, decoder_input_biases,           \
            decoder_qk_norms, decoder_mlp, moe_tensors, moe_shared_tensors, __VA_ARGS__),       \
    .layer = decoder_plain_layer

const struct recipe model_exaone_moe = {
    .family = "exaone-moe",
    .gguf = "exaone-moe",
    .model_type = "exaone_moe",
    .hf_class = "ExaoneMoeForCausalLM",
    .derive = derive,
    EXAONE_MOE(decoder_norms, moe_bias_tensors),
};

const struct recipe model_kolibri1 = {
    .family = "kolibri1",
    .model_type = "kolibri1",
    .hf_class = "Kolibri1ForCausalLM",
    .foreign = "routed_scaling_factor",
    .derive = derive_kolibri,
    EXAONE_MOE(kolibri_norms, moe_bias_tensors),
};

const struct recipe model_flint = {
    .family = "flint",
    .model_type = "flint",
    .hf_class = "FlintForCausalLM",
    .foreign = "routed_scaling_factor",
    .derive = derive_flint,
    EXAONE_MOE(decoder_norms, flint_sinks),
};
