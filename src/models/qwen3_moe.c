/* SPDX-License-Identifier: Apache-2.0
 * qwen3_moe.c: Qwen3MoeForCausalLM: Qwen3 with a mixture of experts. Its GGUF files do not say
 * whether a token's weights are made to sum to 1; in every published model they are. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/qwen2.h"

static ob_status derive(struct build *b, ob_error *error) {
    bool sum_to_one = source_kind(b->source) == SOURCE_GGUF;
    ob_status s =
        build_flag(b, "{arch}.expert_weights_norm", "norm_topk_prob", &sum_to_one, error);
    b->hp->route = sum_to_one ? ROUTE_SOFTMAX_CHOSEN : ROUTE_SOFTMAX;
    if (s == OB_OK) s = qwen2_derive(b, error);
    return s == OB_OK ? moe_sizes(b, error) : s;
}

const struct recipe model_qwen3_moe = {
    .family = "qwen3moe",
    .gguf = "qwen3moe",
    .model_type = "qwen3_moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, qwen2_keys, moe_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, decoder_qk_tensors,
                                              qwen2_norm_tensors, qwen3_norm_tensors, moe_tensors,
                                              NULL},
    .act = "silu",
    .derive = derive,
    .layer = qwen2_layer,
};
