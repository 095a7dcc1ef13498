/* SPDX-License-Identifier: Apache-2.0
 * hunyuan_v1_dense.c: HunYuanDenseV1ForCausalLM: Llama with norms of q and k after the rotation. */
#include "models/blocks/decoder.h"

static const struct tensor norms[] = {
    VECTOR("blk.{i}.attn_q_norm.weight", "{m}layers.{i}.self_attn.query_layernorm.weight", "k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", "{m}layers.{i}.self_attn.key_layernorm.weight", "k_dim",
           REQUIRED),
    {0},
};

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.late_qk_norm = true});
}

const struct recipe model_hunyuan_v1_dense = {
    .family = "hunyuan_v1_dense",
    .gguf = "hunyuan-dense",
    .model_type = "hunyuan_v1_dense",
    .hf_class = "HunYuanDenseV1ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys),
    TENSORS(decoder_ends, decoder_norms, norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp_biases, decoder_mlp),
    .derive = decoder_derive,
    .layer = layer,
};
