/* SPDX-License-Identifier: Apache-2.0
 * jais2.c: Jais2ForCausalLM: layer norms, biases, a plain MLP of squared ReLU. */
#include "models/blocks/decoder.h"

const struct recipe model_jais2 = {
    .family = "jais2",
    .gguf = "jais2",
    .model_type = "jais2",
    .hf_class = "Jais2ForCausalLM",
    .act = "relu2",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_norm_biases, decoder_attention_tensors,
            decoder_attention_biases, decoder_plain_mlp_biases, decoder_plain_mlp),
    .derive = decoder_derive_layer_norms,
    .layer = decoder_plain_layer,
};
