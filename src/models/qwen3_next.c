/* SPDX-License-Identifier: Apache-2.0
 * qwen3_next.c: Qwen3NextForCausalLM: gated delta nets, and full attention with a gate and a
 * partial rope in every fourth layer; a mixture with a gated shared expert; norms of 1 + w. */
#include "models/qwen3_next.h"
#include "models/blocks/decoder.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

#define Q_OF_GATED "part(heads,2*k_dim,0)"
#define GATE_OF_HEADS "part(heads,2*k_dim,k_dim)"
#define Q_PROJ "{m}layers.{i}.self_attn.q_proj.weight"

const struct tensor qwen3_next_norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED, .gguf = "blk.{i}.post_attention_norm.weight|blk.{i}.ffn_norm.weight"),
    {0},
};

const struct tensor qwen3_next_attention[] = {
    MATRIX("blk.{i}.attn_q.weight", Q_PROJ, "heads*k_dim", "width", REQUIRED,
           .from_hf = Q_OF_GATED, .from_gguf = Q_OF_GATED),
    MATRIX("blk.{i}.attn_gate.weight", Q_PROJ, "heads*k_dim", "width", REQUIRED,
           .from_hf = GATE_OF_HEADS, .gguf = "blk.{i}.attn_q.weight", .from_gguf = GATE_OF_HEADS),
    MATRIX("blk.{i}.attn_k.weight", "{m}layers.{i}.self_attn.k_proj.weight", "kv_heads*k_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", "{m}layers.{i}.self_attn.v_proj.weight", "kv_heads*v_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    KNOWN("mtp.*", "mtp.*", "predicts further tokens"),
    {0},
};

const struct tensor qwen3_next_shared_gate[] = {
    MATRIX("blk.{i}.ffn_gate_inp_shexp.weight", "{m}layers.{i}.mlp.shared_expert_gate.weight",
           "sparse", "width", REQUIRED),
    {0},
};

/* Of each key head: q, k, then v and z of its value heads; beta and alpha likewise. */
#define OF_HEADS "lin_k_heads,2*key/lin_k_heads+2*value/lin_k_heads,"
#define BA_OF_HEADS "lin_k_heads,2*lin_v_heads/lin_k_heads,"
#define QKVZ(name, rows, start)                                                                 \
    MATRIX("blk.{i}." name ".weight", "{m}layers.{i}.linear_attn.in_proj_qkvz.weight",          \
           "recurrent*" rows, "width", REQUIRED, .from_hf = "part(" OF_HEADS start ")", .gguf = "")
#define BA(name, start)                                                                         \
    MATRIX("blk.{i}." name ".weight", "{m}layers.{i}.linear_attn.in_proj_ba.weight",            \
           "recurrent*lin_v_heads", "width", REQUIRED, .from_hf = "part(" BA_OF_HEADS start ")", \
           .gguf = "blk.{i}.ssm_ba.weight", .from_gguf = "part(" BA_OF_HEADS start ")")

static const struct tensor tensors[] = {
    QKVZ("ssm_q", "key", "0"),
    QKVZ("ssm_k", "key", "lin_k"),
    QKVZ("ssm_v", "value", "2*lin_k"),
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.linear_attn.in_proj_qkvz.weight",
           "recurrent*value", "width", REQUIRED,
           .from_hf = "part(" OF_HEADS "2*lin_k+value/lin_k_heads)"),
    BA("ssm_beta", "0"),
    BA("ssm_alpha", "lin_v_heads/lin_k_heads"),
    {0},
};

ob_status qwen3_next_sizes(struct build *b, ob_error *error) {
    ob_status s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = deltanet_sizes(b, error);
    return s == OB_OK ? rope_read(b, &(struct rope_source){.hf = "rope_parameters",
                                                           .base_key_hf = "rope_theta",
                                                           .base_key_gguf = "{arch}.rope.freq_base",
                                                           .base = 10000,
                                                           .scaled = true,
                                                           .part = 0.25f},
                                  &b->hp->rope, error)
                      : s;
}

ob_status qwen3_next_mixture(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    ob_status s = qwen3_next_sizes(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->recurrent[b->layer]) return decoder_attention(b, x, args);
    return deltanet_plain(b, x, &(struct deltanet_args){.norm_eps = b->hp->eps});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_qwen3_next = {
    .family = "qwen3_next",
    .gguf = "qwen3next",
    .model_type = "qwen3_next",
    .hf_class = "Qwen3NextForCausalLM",
    .foreign = "routed_scaling_factor",
    .turns_parts = true,
    .norms_plus_one = true,
    KEYS(decoder_keys, moe_keys, deltanet_keys),
    TENSORS(decoder_ends, qwen3_next_norms, qwen3_next_attention, decoder_qk_norms, tensors,
            deltanet_tensors, deltanet_one_conv, decoder_mlp, moe_tensors, moe_shared_tensors,
            qwen3_next_shared_gate),
    .derive = qwen3_next_mixture,
    .layer = layer,
};
