/* SPDX-License-Identifier: Apache-2.0
 * qwen3.c: Qwen3ForCausalLM: Qwen2 without biases and with RMS norms on each head of q and k. */
#include "models/blocks/decoder.h"
#include "models/qwen2.h"

const struct recipe model_qwen3 = {
    .family = "qwen3",
    .gguf = "qwen3",
    .model_type = "qwen3",
    .hf_class = "Qwen3ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_qk_norms, decoder_mlp),
    .derive = qwen2_derive,
    .layer = decoder_plain_layer,
};
