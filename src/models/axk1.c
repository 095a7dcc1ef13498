/* SPDX-License-Identifier: Apache-2.0
 * axk1.c: AXK1ForCausalLM: DeepSeek-V3 with a norm after the mixture of experts. Files have it in
 * dense layers, too, where it is not used, and may lack the router's bias. */
#include "models/blocks/moe.h"
#include "models/deepseek_v2.h"

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_mlp_layernorm.weight",
           "sparse*width", REQUIRED),
    {.name = "blk.{i}.post_ffw_norm.weight",
     .hf = "{m}layers.{i}.post_mlp_layernorm.weight",
     .cols = "ffn",
     .need = UNUSED,
     .reason = "only layers with experts have this norm"},
    VECTOR("blk.{i}.exp_probs_b.bias", "{m}layers.{i}.mlp.gate.e_score_correction_bias", "experts",
           OPTIONAL),
    {0},
};

const struct recipe model_axk1 = {
    .family = "axk1",
    .model_type = "axk1",
    .hf_class = "AXK1ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, moe_tensors, moe_shared_tensors,
            tensors),
    .derive = deepseek_v3_derive,
    .layer = mla_layer,
};
