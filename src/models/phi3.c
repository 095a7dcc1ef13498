/* SPDX-License-Identifier: Apache-2.0
 * phi3.c: Phi3ForCausalLM: Llama with q, k and v in one tensor, gate and up in another, a window in
 * every layer, and longrope: another set of rotary frequencies for long sequences. */
#include "models/blocks/decoder.h"

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", "{m}layers.{i}.self_attn.qkv_proj.weight", "heads*k_dim",
           "width", REQUIRED, .from_hf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", "{m}layers.{i}.self_attn.qkv_proj.weight", "kv_heads*k_dim",
           "width", REQUIRED, .from_hf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", "{m}layers.{i}.self_attn.qkv_proj.weight", "kv_heads*v_dim",
           "width", REQUIRED, .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    {0},
};

const struct recipe model_phi3 = {
    .family = "phi3",
    .model_type = "phi3",
    .hf_class = "Phi3ForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, tensors, decoder_gguf_qkv, decoder_fused_mlp),
    .derive = decoder_derive_sliding,
    .layer = decoder_plain_layer,
};
