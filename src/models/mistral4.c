/* SPDX-License-Identifier: Apache-2.0
 * mistral4.c: Mistral4ForCausalLM: latent attention whose queries grow with the position, and a
 * mixture routed by softmax within the groups of the best two experts. */
#include "models/blocks/mla.h"
#include "models/blocks/moe.h"

/* llama.cpp's converter leaves gate and up as they are. */
static const struct tensor fused[] = {
    MATRIX("blk.{i}.ffn_gate_exps.weight", NULL, "expert_ffn", "width", OPTIONAL,
           .gguf = "blk.{i}.ffn_gate_up_exps.weight",
           .from_gguf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", NULL, "expert_ffn", "width", OPTIONAL,
           .gguf = "blk.{i}.ffn_gate_up_exps.weight",
           .from_gguf = "experts part(1,2*expert_ffn,expert_ffn)"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX,
                                             .group = ROUTE_GROUP_TOP2,
                                             .group_zero = true,
                                             .normalize = true,
                                             .normalize_eps = 1e-20f,
                                             .scale = 1};
    ob_status s = mla_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

const struct recipe model_mistral4 = {
    .family = "mistral4",
    .gguf = "mistral4",
    .model_type = "mistral4",
    .hf_class = "Mistral4ForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, moe_fused_tensors, fused,
            moe_shared_tensors),
    .derive = derive,
    .layer = mla_layer,
};
