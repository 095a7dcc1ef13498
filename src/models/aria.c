/* SPDX-License-Identifier: Apache-2.0
 * aria.c: AriaTextForCausalLM: Llama with a mixture of experts, all of a layer in one tensor,
 * beside shared ones. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

#define MLP "{m}layers.{i}.mlp."

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.weight", "experts", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "experts.fc1.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts T part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "experts.fc1.weight", "expert_ffn", "width", REQUIRED,
           .from_hf = "experts T part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "experts.fc2.weight", "width", "expert_ffn",
           REQUIRED, .from_hf = "experts T"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    if (b->hp->act != ACT_SILU)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "hidden_act", error,
                            "experts of this family have \"silu\"");
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

const struct recipe model_aria_text = {
    .family = "aria_text",
    .model_type = "aria_text",
    .hf_class = "AriaTextForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            tensors, moe_shared_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
