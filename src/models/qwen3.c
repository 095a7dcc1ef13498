/* SPDX-License-Identifier: Apache-2.0
 * qwen3.c: Qwen3ForCausalLM: Qwen2 without biases and with RMS norms on each head of q and k. */
#include "models/blocks/decoder.h"
#include "models/qwen2.h"

const struct tensor qwen3_norm_tensors[] = {
    {"blk.{i}.attn_q_norm.weight", "model.layers.{i}.self_attn.q_norm.weight", NULL, "k_dim",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_k_norm.weight", "model.layers.{i}.self_attn.k_norm.weight", NULL, "k_dim",
     REQUIRED, AS_IS, NULL},
    {0},
};

const struct recipe model_qwen3 = {
    .family = "qwen3",
    .gguf = "qwen3",
    .model_type = "qwen3",
    .hf_class = "Qwen3ForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, qwen2_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, decoder_qk_tensors,
                                              qwen2_norm_tensors, qwen3_norm_tensors, NULL},
    .act = "silu",
    .derive = qwen2_derive,
    .layer = qwen2_layer,
};
