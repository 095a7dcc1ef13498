/* SPDX-License-Identifier: Apache-2.0
 * starcoder2.c: Starcoder2ForCausalLM: layer norms, biases, a plain MLP and a window in every
 * layer. */
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    WHOLE("attention_bias", NULL, "use_bias", OPTIONAL, 1, 0, 1),
    WHOLE("mlp_bias", NULL, "use_bias", OPTIONAL, 1, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.c_fc.weight", "ffn", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", "{m}layers.{i}.mlp.c_fc.bias", "mlp_bias*ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.c_proj.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", "{m}layers.{i}.mlp.c_proj.bias", "mlp_bias*width", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    return decoder_derive_sliding(b, error);
}

const struct recipe model_starcoder2 = {
    .family = "starcoder2",
    .gguf = "starcoder2",
    .model_type = "starcoder2",
    .hf_class = "Starcoder2ForCausalLM",
    .act = "gelu_pytorch_tanh",
    KEYS(decoder_keys, keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, decoder_norm_biases, decoder_attention_tensors,
            decoder_attention_biases, tensors),
    .derive = derive,
    .layer = decoder_plain_layer,
};
