/* SPDX-License-Identifier: Apache-2.0
 * mellum.c: MellumForCausalLM: Qwen3 MoE with a rope of its own for layers with windows. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static ob_status derive(struct build *b, ob_error *error) {
    bool sums_to_one = source_kind(b->meta) == SOURCE_GGUF;
    const struct route_args router = {.score = ROUTE_SOFTMAX, .normalize = sums_to_one};
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = rope_read_by_type(b, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 4, false);
    return moe_sizes(b, &router, error);
}

const struct recipe model_mellum = {
    .family = "mellum",
    .gguf = "mellum",
    .model_type = "mellum",
    .hf_class = "MellumForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, decoder_mlp, moe_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
