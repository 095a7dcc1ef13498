/* SPDX-License-Identifier: Apache-2.0
 * hy_v3.c: HYV3ForCausalLM (Hunyuan 3): norms of q and k, and a sigmoid router with a bias of
 * choice beside shared experts. SolarOpenForCausalLM has DeepSeek V3's router and no norms of q
 * and k. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct route_args router = {.score = ROUTE_SIGMOID,
                                         .group = ROUTE_GROUP_TOP2,
                                         .normalize = true,
                                         .normalize_eps = 1e-20f};

/* GGUF files have the bias without an ending. */
static const struct tensor bias[] = {
    VECTOR("blk.{i}.exp_probs_b.bias", "{m}layers.{i}.mlp.expert_bias", "experts", REQUIRED,
           .gguf = "blk.{i}.exp_probs_b|blk.{i}.exp_probs_b.bias"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_hy_v3 = {
    .family = "hy_v3",
    .gguf = "hy_v3",
    .model_type = "hy_v3",
    .hf_class = "HYV3ForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_mlp, decoder_mlp_biases, moe_tensors, moe_shared_tensors,
            bias),
    .derive = derive,
    .layer = decoder_plain_layer,
};

static const struct tensor norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED, .gguf = "blk.{i}.post_attention_norm.weight"),
    {0},
};

const struct recipe model_solar_open = {
    .family = "solar_open",
    .written_as = "glm4moe",
    .model_type = "solar_open",
    .hf_class = "SolarOpenForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, norms, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp, moe_tensors, moe_shared_tensors, moe_bias_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
