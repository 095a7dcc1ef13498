/* SPDX-License-Identifier: Apache-2.0
 * mixtral.c: MixtralForCausalLM: Mistral with a mixture of experts. Its GGUF files say "llama". */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/llama.h"

static const struct tensor tensors[] = {
    {"blk.{i}.ffn_gate_inp.weight", "model.layers.{i}.block_sparse_moe.gate.weight", "experts",
     "width", REQUIRED, AS_IS, NULL},
    {"blk.{i}.ffn_gate_exps.weight", "model.layers.{i}.block_sparse_moe.experts.{e}.w1.weight",
     "expert_ffn", "width", REQUIRED, STACK, NULL},
    {"blk.{i}.ffn_up_exps.weight", "model.layers.{i}.block_sparse_moe.experts.{e}.w3.weight",
     "expert_ffn", "width", REQUIRED, STACK, NULL},
    {"blk.{i}.ffn_down_exps.weight", "model.layers.{i}.block_sparse_moe.experts.{e}.w2.weight",
     "width", "expert_ffn", REQUIRED, STACK, NULL},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    b->hp->route = ROUTE_SOFTMAX_CHOSEN;
    ob_status s = mistral_derive(b, error);
    return s == OB_OK ? moe_sizes(b, error) : s;
}

const struct recipe model_mixtral = {
    .family = "mixtral",
    .model_type = "mixtral",
    .hf_class = "MixtralForCausalLM",
    .keys = (const struct key *const[]){decoder_keys, mistral_keys, moe_keys, NULL},
    .tensors = (const struct tensor *const[]){decoder_tensors, llama_tensors, tensors, NULL},
    .act = "silu",
    .derive = derive,
    .layer = llama_layer,
};
