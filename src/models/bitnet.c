/* SPDX-License-Identifier: Apache-2.0
 * bitnet.c: BitNetForCausalLM (arXiv 2504.12285): Llama with a norm before each sub-layer's last
 * projection and a squared ReLU. */
#include "models/blocks/decoder.h"

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_sub_norm.weight", "{m}layers.{i}.self_attn.attn_sub_norm.weight",
           "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.ffn_sub_norm.weight", "{m}layers.{i}.mlp.ffn_sub_norm.weight", "ffn",
           REQUIRED),
    {0},
};

const struct recipe model_bitnet = {
    .family = "bitnet",
    .model_type = "bitnet",
    .hf_class = "BitNetForCausalLM",
    .act = "relu2",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, tensors, decoder_attention_tensors,
            decoder_attention_biases, decoder_mlp),
    .derive = decoder_derive,
    .layer = decoder_plain_layer,
};
