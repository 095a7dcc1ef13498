/* SPDX-License-Identifier: Apache-2.0
 * ministral.c: MinistralForCausalLM: Mistral with windows in the layers that layer_types names. */
#include "models/blocks/decoder.h"

const struct recipe model_ministral = {
    .family = "ministral",
    .model_type = "ministral",
    .hf_class = "MinistralForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_mlp),
    .derive = decoder_derive_types,
    .layer = decoder_plain_layer,
};
