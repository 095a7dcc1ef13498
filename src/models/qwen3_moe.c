/* SPDX-License-Identifier: Apache-2.0
 * qwen3_moe.c: Qwen3MoeForCausalLM: Qwen3 with a mixture of experts. Its GGUF files do not say
 * whether a token's weights are made to sum to 1; in every published model they are. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/qwen2.h"

static ob_status derive(struct build *b, ob_error *error) {
    bool sums_to_one = source_kind(b->meta) == SOURCE_GGUF;
    const struct route_args router = {.score = ROUTE_SOFTMAX, .normalize = sums_to_one};
    /* transformers has one mask for all layers; llama.cpp's files have a window for each. */
    bool gguf = source_kind(b->meta) == SOURCE_GGUF, slides = false;
    ob_status s = gguf ? qwen2_derive(b, error) : decoder_derive(b, error);
    if (!gguf) build_bool(b, NULL, "use_sliding_window", &slides);
    build_has(b, NULL, "layer_types"), build_has(b, NULL, "max_window_layers"); /* not heard */
    for (uint32_t i = 0; s == OB_OK && slides && i < b->hp->layers; i++)
        b->hp->window[i] = b->hp->window_size;
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_qwen3_moe = {
    .family = "qwen3moe",
    .gguf = "qwen3moe",
    .model_type = "qwen3_moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .foreign = "routed_scaling_factor|max_window_layers|layer_types",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_qk_norms, decoder_mlp, moe_tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
