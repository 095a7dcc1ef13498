/* SPDX-License-Identifier: Apache-2.0
 * qwen3_moe.c: Qwen3MoeForCausalLM: Qwen3 with a mixture of experts. Its GGUF files do not say
 * whether a token's weights are made to sum to 1; in every published model they are. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/qwen2.h"

static ob_status derive(struct build *b, ob_error *error) {
    bool sums_to_one = source_kind(b->meta) == SOURCE_GGUF;
    const struct route_args router = {.score = ROUTE_SOFTMAX, .normalize = sums_to_one};
    ob_status s = qwen2_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_qwen3_moe = {
    .family = "qwen3moe",
    .gguf = "qwen3moe",
    .model_type = "qwen3_moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_qk_norms, decoder_mlp, moe_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
