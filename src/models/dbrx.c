/* SPDX-License-Identifier: Apache-2.0
 * dbrx.c: DbrxForCausalLM: layer norms, q, k and v in one tensor and cut to a range, and a mixture
 * of experts whose matrices lie one after the other. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    {"{arch}.attention.head_count_kv", "attn_config.kv_n_heads", KEY_LAYERS,
     offsetof(struct hparams, kv_heads), OPTIONAL, 0, 1, 1024, NULL},
    {"{arch}.attention.clamp_kqv", "attn_config.clip_qkv", KEY_F32,
     offsetof(struct hparams, attention_clamp), OPTIONAL, 0, 0, 0, NULL},
    {"{arch}.feed_forward_length", "ffn_config.ffn_hidden_size", KEY_LAYERS,
     offsetof(struct hparams, ffn), REQUIRED, 0, 1, 1 << 24, NULL},
    {"{arch}.expert_count", "ffn_config.moe_num_experts", KEY_U32,
     offsetof(struct hparams, expert_count), REQUIRED, 0, 1, 4096, NULL},
    {"{arch}.expert_used_count", "ffn_config.moe_top_k", KEY_U32,
     offsetof(struct hparams, route.used), REQUIRED, 0, 1, EXPERTS_USED_MAX, NULL},
    {0},
};

#define LAYER "{m}blocks.{i}."
#define ATTENTION LAYER "norm_attn_norm."

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}wte.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}norm_f.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", ATTENTION "norm_1.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", ATTENTION "norm_2.weight", "width", REQUIRED,
           .gguf = "blk.{i}.attn_output_norm.weight"),
    MATRIX("blk.{i}.attn_q.weight", ATTENTION "attn.Wqkv.weight", "heads*k_dim", "width", REQUIRED,
           .from_hf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", ATTENTION "attn.Wqkv.weight", "kv_heads*k_dim", "width",
           REQUIRED, .from_hf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", ATTENTION "attn.Wqkv.weight", "kv_heads*v_dim", "width",
           REQUIRED, .from_hf = V_OF_QKV),
    MATRIX("blk.{i}.attn_output.weight", ATTENTION "attn.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", LAYER "ffn.router.layer.weight", "experts", "width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", LAYER "ffn.experts.mlp.w1", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts"),
    MATRIX("blk.{i}.ffn_up_exps.weight", LAYER "ffn.experts.mlp.v1", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts"),
    MATRIX("blk.{i}.ffn_down_exps.weight", LAYER "ffn.experts.mlp.w2", "width", "expert_ffn",
           REQUIRED, .from_hf = "experts T"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    double norm;
    struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    b->hp->norm = NORM_LAYER;
    b->hp->eps = 1e-5f;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    static const char order[] = "ffn_config.moe_normalize_expert_weights";
    if (source_kind(b->meta) == SOURCE_HF) {
        if (!build_f64_at(b, NULL, order, 0, &norm)) router.score = ROUTE_SOFTMAX;
        else if (norm != 1)
            return build_refuse(b, OB_ERR_UNSUPPORTED, order, order, error,
                                "weights of experts are only made to sum to 1");
    }
    return moe_sizes(b, &router, error);
}

const struct recipe model_dbrx = {
    .family = "dbrx",
    .gguf = "dbrx",
    .model_type = "dbrx",
    .hf_class = "DbrxForCausalLM",
    .foreign = "routed_scaling_factor",
    .roots = "transformer.",
    .act_key = "ffn_config.ffn_act_fn.name",
    KEYS(decoder_keys, moe_keys, keys),
    TENSORS(tensors, decoder_gguf_qkv),
    .derive = derive,
    .layer = decoder_plain_layer,
};
