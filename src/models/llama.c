/* SPDX-License-Identifier: Apache-2.0
 *
 * llama.c: LlamaForCausalLM (Llama 1 to 3, and the many models that keep its layout). In GGUF the
 * rows of q and k are permuted so that rotary pairs are adjacent, and files of Mixtral say "llama",
 * too: they have experts. */
#include "models/llama.h"

#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

const struct tensor llama_tensors[] = {
    {"output_norm.weight", "model.norm.weight", NULL, "width", REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_norm.weight", "model.layers.{i}.input_layernorm.weight", NULL, "width", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.ffn_norm.weight", "model.layers.{i}.post_attention_layernorm.weight", NULL, "width",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_q.weight", "model.layers.{i}.self_attn.q_proj.weight", "heads*k_dim", "width",
     REQUIRED, PERMUTE_Q, NULL},
    {"blk.{i}.attn_k.weight", "model.layers.{i}.self_attn.k_proj.weight", "kv_heads*k_dim", "width",
     REQUIRED, PERMUTE_K, NULL},
    {"blk.{i}.attn_q.bias", "model.layers.{i}.self_attn.q_proj.bias", NULL, "heads*k_dim", OPTIONAL,
     PERMUTE_Q, NULL},
    {"blk.{i}.attn_k.bias", "model.layers.{i}.self_attn.k_proj.bias", NULL, "kv_heads*k_dim",
     OPTIONAL, PERMUTE_K, NULL},
    {"blk.{i}.attn_v.bias", "model.layers.{i}.self_attn.v_proj.bias", NULL, "kv_heads*v_dim",
     OPTIONAL, AS_IS, NULL},
    {"blk.{i}.attn_output.bias", "model.layers.{i}.self_attn.o_proj.bias", NULL, "width", OPTIONAL,
     AS_IS, NULL},
    {"blk.{i}.ffn_gate.bias", "model.layers.{i}.mlp.gate_proj.bias", NULL, "ffn", OPTIONAL, AS_IS,
     NULL},
    {"blk.{i}.ffn_up.bias", "model.layers.{i}.mlp.up_proj.bias", NULL, "ffn", OPTIONAL, AS_IS,
     NULL},
    {"blk.{i}.ffn_down.bias", "model.layers.{i}.mlp.down_proj.bias", NULL, "width", OPTIONAL, AS_IS,
     NULL},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->route = ROUTE_SOFTMAX_CHOSEN;
    ob_status s = decoder_derive(b, error);
    return s == OB_OK && b->hp->expert_count ? moe_sizes(b, error) : s;
}

value_id llama_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.act = ACT_SILU, .interleaved = true});
}

const struct recipe model_llama = {
    .family = "llama",
    .gguf = "llama",
    .model_type = "llama",
    .hf_class = "LlamaForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, moe_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, llama_tensors, moe_tensors, NULL},
    .act = "silu",
    .derive = derive,
    .layer = llama_layer,
};
