/* SPDX-License-Identifier: Apache-2.0
 * hunyuan_v1_dense.c: HunYuanDenseV1ForCausalLM: Llama with norms of q and k after the rotation.
 * HunYuanMoEV1ForCausalLM has a mixture of experts beside a shared one in all layers, each as wide
 * as the plain MLP. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

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

static const struct tensor router[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.mlp.gate.wg.weight", "experts", "width",
           REQUIRED),
    {0},
};

static ob_status derive_moe(struct build *b, ob_error *error) {
    const struct route_args softmax = {.score = ROUTE_SOFTMAX, .normalize = true};
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK && build_number(b, "shared_ffn") == 0)
        s = build_set(b, "shared_ffn", b->hp->ffn[0], error);
    return s == OB_OK ? moe_sizes(b, &softmax, error) : s;
}

const struct recipe model_hunyuan_v1_moe = {
    .family = "hunyuan_v1_moe",
    .gguf = "hunyuan-moe",
    .model_type = "hunyuan_v1_moe",
    .hf_class = "HunYuanMoEV1ForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, norms, decoder_attention_tensors, decoder_attention_biases,
            router, moe_tensors, moe_shared_tensors),
    .derive = derive_moe,
    .layer = layer,
};
