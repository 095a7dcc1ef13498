/* SPDX-License-Identifier: Apache-2.0
 * arcee.c: ArceeForCausalLM (AFM): Llama with a plain MLP of squared ReLU. */
#include "models/blocks/decoder.h"

const struct recipe model_arcee = {
    .family = "arcee",
    .gguf = "arcee",
    .model_type = "arcee",
    .hf_class = "ArceeForCausalLM",
    .act = "relu2",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases,
            decoder_plain_mlp_biases, decoder_plain_mlp),
    .derive = decoder_derive,
    .layer = decoder_paired_layer,
};
