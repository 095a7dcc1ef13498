/* SPDX-License-Identifier: Apache-2.0
 * olmo2.c: Olmo2ForCausalLM: norms only after attention and MLP, norms of q and k over the whole
 * projection. */
#include "models/blocks/decoder.h"

static const struct tensor norms[] = {
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_feedforward_layernorm.weight",
           "width", REQUIRED),
    {0},
};

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.wide_qk_norm = true});
}

const struct recipe model_olmo2 = {
    .family = "olmo2",
    .gguf = "olmo2",
    .model_type = "olmo2",
    .hf_class = "Olmo2ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_wide_qk_norms, decoder_mlp),
    .derive = decoder_derive,
    .layer = layer,
};
