/* SPDX-License-Identifier: Apache-2.0
 * helium.c: HeliumForCausalLM: Llama with rotary pairs. */
#include "models/blocks/decoder.h"

const struct recipe model_helium = {
    .family = "helium",
    .model_type = "helium",
    .hf_class = "HeliumForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_input_biases,
            decoder_mlp_biases, decoder_mlp),
    .derive = decoder_derive,
    .layer = decoder_paired_layer,
};
