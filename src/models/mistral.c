/* SPDX-License-Identifier: Apache-2.0
 * mistral.c: MistralForCausalLM: Llama with one sliding window for all layers. Its GGUF files say
 * "llama". */
#include "models/blocks/decoder.h"

const struct recipe model_mistral = {
    .family = "mistral",
    .written_as = "llama",
    .model_type = "mistral",
    .hf_class = "MistralForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_mlp),
    .derive = decoder_derive_sliding,
    .layer = decoder_paired_layer,
};
