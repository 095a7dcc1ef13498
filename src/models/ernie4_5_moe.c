/* SPDX-License-Identifier: Apache-2.0
 * ernie4_5_moe.c: Ernie4_5_MoeForCausalLM: ERNIE 4.5 with a mixture of experts in a range of
 * layers; a bias takes part in choosing them. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "use_bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "use_bias", OPTIONAL, 0, 0, 1),
    WHOLE("step", "{arch}.interleave_moe_layer_step", "moe_layer_interval", OPTIONAL, 1, 1, 4096),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("output.bias", "lm_head.bias", "mlp_bias*vocab", OPTIONAL,
           .needed = "by_config"),
    VECTOR("blk.{i}.ffn_gate_shexp.bias", "{m}layers.{i}.mlp.shared_experts.gate_proj.bias",
           "sparse*mlp_bias*shared_ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_up_shexp.bias", "{m}layers.{i}.mlp.shared_experts.up_proj.bias",
           "sparse*mlp_bias*shared_ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down_shexp.bias", "{m}layers.{i}.mlp.shared_experts.down_proj.bias",
           "sparse*mlp_bias*shared_ffn/shared_ffn*width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    return moe_sizes(
        b,
        &(struct route_args){.score = ROUTE_SOFTMAX, .normalize = true, .normalize_eps = 1e-12f},
        error);
}

const struct recipe model_ernie4_5_moe = {
    .family = "ernie4_5_moe",
    .gguf = "ernie4_5-moe",
    .model_type = "ernie4_5_moe",
    .hf_class = "Ernie4_5_MoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_mlp, moe_tensors, moe_shared_tensors, moe_bias_tensors,
            tensors),
    .derive = derive,
    .layer = decoder_paired_layer,
};
