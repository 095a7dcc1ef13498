/* SPDX-License-Identifier: Apache-2.0
 * ernie4_5.c: Ernie4_5ForCausalLM: Llama with rotary pairs and biases where use_bias says so. */
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "use_bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "use_bias", OPTIONAL, 0, 0, 1),
    {0},
};

const struct recipe model_ernie4_5 = {
    .family = "ernie4_5",
    .gguf = "ernie4_5",
    .model_type = "ernie4_5",
    .hf_class = "Ernie4_5ForCausalLM",
    KEYS(decoder_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_mlp),
    .derive = decoder_derive,
    .layer = decoder_paired_layer,
};
