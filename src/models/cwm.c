/* SPDX-License-Identifier: Apache-2.0
 * cwm.c: CwmForCausalLM (Code World Model): Llama 3 with windows in the layers that layer_types
 * names. */
#include "models/blocks/decoder.h"

const struct recipe model_cwm = {
    .family = "cwm",
    .model_type = "cwm",
    .hf_class = "CwmForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp_biases, decoder_mlp),
    .derive = decoder_derive_types,
    .layer = decoder_plain_layer,
};
