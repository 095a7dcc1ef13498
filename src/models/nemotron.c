/* SPDX-License-Identifier: Apache-2.0
 * nemotron.c: NemotronForCausalLM: layer norms whose weight means 1 + w, a plain MLP of squared
 * ReLU, and rotary embedding on half of each head. */
#include "models/blocks/decoder.h"

const struct recipe model_nemotron = {
    .family = "nemotron",
    .gguf = "nemotron",
    .model_type = "nemotron",
    .hf_class = "NemotronForCausalLM",
    .turns_parts = true,
    .norms_plus_one = true,
    .act = "relu2",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_norm_biases, decoder_attention_tensors,
            decoder_attention_biases, decoder_plain_mlp_biases, decoder_plain_mlp),
    .derive = decoder_derive_layer_norms,
    .layer = decoder_plain_layer,
};
