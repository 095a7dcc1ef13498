/* SPDX-License-Identifier: Apache-2.0
 * kimi_linear.c: KimiLinearForCausalLM: Kimi delta attention, a gated delta net whose decay has a
 * value for each element of k, and latent attention without positions; a sigmoid mixture. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mla.h"
#include "models/blocks/moe.h"
#include "models/blocks/kda.h"

#define AT(name) "{m}layers.{i}.self_attn." name
#define MLP(name) "{m}layers.{i}.block_sparse_moe." name ".weight|{m}layers.{i}.mlp." name ".weight"
#define EXPERT(name) "{m}layers.{i}.block_sparse_moe.experts.{e}." name ".weight"

/* In GGUF as many heads as attention has. */
static const struct key keys[] = {
    WHOLE("conv", "{arch}.ssm.conv_kernel", "linear_conv_kernel_dim|short_conv_kernel_size",
          OPTIONAL, 4, 1, 64),
    WHOLE("lin_k", "{arch}.kda.head_dim", "linear_key_head_dim|linear_head_dim", REQUIRED, 0, 1,
          4096),
    WHOLE("lin_v", NULL, "linear_value_head_dim|linear_head_dim", OPTIONAL, 0, 1, 4096),
    WHOLE("lin_k_heads", NULL, "linear_num_key_heads|linear_num_heads", OPTIONAL, 0, 1, 4096),
    WHOLE("lin_v_heads", NULL, "linear_num_value_heads|linear_num_heads", OPTIONAL, 0, 1, 4096),
    {0},
};

static const struct tensor tensors[] = {
    KDA_TENSORS("self_attn", "o_proj"),
    MATRIX("blk.{i}.ssm_f_a.weight", AT("f_a_proj.weight"), "recurrent*lin_k", "width", REQUIRED),
    MATRIX("blk.{i}.ssm_f_b.weight", AT("f_b_proj.weight"), "recurrent*key", "lin_k", REQUIRED),
    MATRIX("blk.{i}.ssm_g_a.weight", AT("g_a_proj.weight"), "recurrent*lin_v", "width", REQUIRED),
    MATRIX("blk.{i}.ssm_g_b.weight", AT("g_b_proj.weight"), "recurrent*value", "lin_v", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", MLP("gate_proj"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP("up_proj"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP("down_proj"), "width", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP("gate"), "experts", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias",
           "{m}layers.{i}.block_sparse_moe.gate.e_score_correction_bias", "experts", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", EXPERT("w1"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", EXPERT("w2"), "width", "expert_ffn", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", EXPERT("w3"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_gate_shexp.weight", MLP("shared_experts.gate_proj"), "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up_shexp.weight", MLP("shared_experts.up_proj"), "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", MLP("shared_experts.down_proj"), "width",
           "sparse*shared_ffn", REQUIRED),
    {0},
};

static ob_status read_heads(struct build *b, const char *name, ob_error *error) {
    if (build_whole(b, name)) return OB_OK;
    if (source_kind(b->meta) == SOURCE_GGUF)
        return build_set(b, name, (double)b->hp->heads[0], error);
    return build_refuse(b, OB_ERR_FORMAT, NULL, "linear_num_heads", error, "is missing");
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = read_heads(b, "lin_k_heads", error);
    if (s == OB_OK) s = read_heads(b, "lin_v_heads", error);
    if (s == OB_OK) s = build_set(b, "inner", 0, error);
    if (s == OB_OK) s = kda_derive(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++) b->hp->no_rope[i] = true;
    return s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return mla_mixer(b, x, args);
    value_id decay = block_linear(b, block_linear(b, x, "ssm_f_a"), "ssm_f_b");
    value_id gate = block_linear(b, block_linear(b, x, "ssm_g_a"), "ssm_g_b");
    return deltanet_mixer(b, x, &(struct deltanet_args){.decay = deltanet_decay(b, decay),
                                                        .gate = gate,
                                                        .act = ACT_SIGMOID,
                                                        .norm_eps = b->hp->eps});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_kimi_linear = {
    .family = "kimi_linear",
    .gguf = "kimi-linear",
    .model_type = "kimi_linear",
    .hf_class = "KimiLinearForCausalLM",
    .foreign = "n_group",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys, keys, kda_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, tensors),
    .derive = derive,
    .layer = layer,
};
