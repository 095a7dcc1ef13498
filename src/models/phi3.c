/* SPDX-License-Identifier: Apache-2.0
 * phi3.c: Phi3ForCausalLM: Llama with q, k and v in one tensor, gate and up in another, a window in
 * every layer, and longrope: another set of rotary frequencies for long sequences.
 * Phi4MultimodalForCausalLM is the same for text; what adapts it to images and speech, their towers
 * and the low-rank parts beside its matrices, is left out. */
#include "models/blocks/decoder.h"

static const struct tensor tensors[] = {
    FUSED_QKV("{m}layers.{i}.self_attn.qkv_proj", Q_OF_QKV, K_OF_QKV, V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    {0},
};

const struct recipe model_phi3 = {
    .family = "phi3",
    .gguf = "phi3",
    .model_type = "phi3",
    .hf_class = "Phi3ForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, tensors, decoder_gguf_qkv, decoder_fused_mlp),
    .derive = decoder_derive_sliding,
    .layer = decoder_plain_layer,
};

#define L "{m}layers.{i}."
#define ADAPTED(part_) L part_ ".weight|" L part_ ".base_layer.weight"
#define ADAPTER(name_, part_) \
    KNOWN("blk.{i}.lora." name_, L part_ ".lora_*", "adapts to images and speech")

/* The first published files name a matrix beside its adapters "base_layer". */
static const struct tensor adapted[] = {
    MATRIX("blk.{i}.attn_q.weight", ADAPTED("self_attn.qkv_proj"), "heads*k_dim", "width", REQUIRED,
           .from_hf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", ADAPTED("self_attn.qkv_proj"), "kv_heads*k_dim", "width",
           REQUIRED, .from_hf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", ADAPTED("self_attn.qkv_proj"), "kv_heads*v_dim", "width",
           REQUIRED, .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", ADAPTED("self_attn.o_proj"), "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", ADAPTED("mlp.gate_up_proj"), "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", ADAPTED("mlp.gate_up_proj"), "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", ADAPTED("mlp.down_proj"), "width", "ffn", REQUIRED),
    ADAPTER("qkv", "self_attn.qkv_proj"),
    ADAPTER("output", "self_attn.o_proj"),
    ADAPTER("gate_up", "mlp.gate_up_proj"),
    ADAPTER("down", "mlp.down_proj"),
    KNOWN("towers", "{m}embed_tokens_extend.*", "not needed for text"),
    {0},
};

const struct recipe model_phi4_multimodal = {
    .family = "phi4_multimodal",
    .model_type = "phi4_multimodal",
    .also_type = "phi4mm",
    .hf_class = "Phi4MultimodalForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_norms, adapted),
    .derive = decoder_derive_sliding,
    .layer = decoder_plain_layer,
};
