/* SPDX-License-Identifier: Apache-2.0
 * lfm2.c: Lfm2ForCausalLM and Lfm2MoeForCausalLM: gated short convolutions, and attention with
 * norms of q and k in some layers; the larger one has a mixture after its first layers, by a
 * sigmoid and a bias that only chooses. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/blocks/shortconv.h"

static const struct key moe_bias_keys[] = {
    WHOLE("expert_bias", NULL, "use_expert_bias", OPTIONAL, 1, 0, 1),
    {0},
};

#define ATTN(name) "{m}layers.{i}.self_attn." name ".weight"
#define EXPERT(name) "{m}layers.{i}.feed_forward.experts.{e}." name ".weight"

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_output.weight", ATTN("out_proj"), "width", "heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", ATTN("q_layernorm"), "attends*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", ATTN("k_layernorm"), "attends*k_dim", REQUIRED),
    {0},
};

static const struct tensor experts[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.feed_forward.gate.weight", "experts",
           "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", "{m}layers.{i}.feed_forward.expert_bias",
           "expert_bias*experts", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", EXPERT("w1"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", EXPERT("w3"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", EXPERT("w2"), "width", "expert_ffn", REQUIRED,
           .from_hf = "stack"),
    {0},
};

static bool is_recurrent(struct build *b, uint32_t layer) {
    uint64_t named;
    if (build_has(b, NULL, "layer_types")) return hybrid_is_recurrent(b, layer);
    for (uint64_t i = 0; i < build_count(b, NULL, "full_attn_idxs"); i++)
        if (build_u64_at(b, NULL, "full_attn_idxs", i, &named) && named == layer) return false;
    return build_has(b, NULL, "full_attn_idxs");
}

/* config.json has the width before it is cut to two thirds and rounded up. */
static void adjust_width(struct build *b) {
    struct hparams *hp = b->hp;
    bool adjust = true;
    float times = 1;
    uint32_t wide = hp->ffn[0], multiple = 256;
    build_bool(b, NULL, "block_auto_adjust_ff_dim", &adjust);
    build_f32(b, NULL, "block_ffn_dim_multiplier", &times);
    build_u32(b, NULL, "block_multiple_of", &multiple);
    build_u32(b, NULL, "block_ff_dim", &wide);
    if (adjust && multiple > 0 && wide <= 1 << 24) {
        const uint32_t part = 2 * wide / 3;
        wide = (uint32_t)(times * (float)part);
        wide = (wide + multiple - 1) / multiple * multiple;
    }
    for (uint32_t i = 0; i < hp->layers; i++) hp->ffn[i] = wide;
}

static ob_status sizes(struct build *b, ob_error *error) {
    ob_status s = hybrid_sizes(b, is_recurrent, error);
    return s == OB_OK ? rope_read(b, &(struct rope_source){.hf = "rope_parameters",
                                                           .base_key_hf = "rope_theta|theta",
                                                           .base_key_gguf = "{arch}.rope.freq_base",
                                                           .base = 1e6f,
                                                           .scaled = true},
                                  &b->hp->rope, error)
                      : s;
}

static ob_status derive(struct build *b, ob_error *error) {
    if (source_kind(b->meta) == SOURCE_HF) adjust_width(b);
    return sizes(b, error);
}

static ob_status derive_mixture(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SIGMOID,
                                             .normalize = true,
                                             .normalize_eps = 1e-6f};
    ob_status s = sizes(b, error);
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    return b->hp->recurrent[b->layer] ? shortconv_mixer(b, x) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

const struct recipe model_lfm2 = {
    .family = "lfm2",
    .gguf = "lfm2",
    .model_type = "lfm2",
    .hf_class = "Lfm2ForCausalLM",
    .act_key = "",
    KEYS(decoder_keys, shortconv_keys),
    TENSORS(shortconv_rest, decoder_ends, decoder_attention_tensors, tensors, shortconv_tensors),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_lfm2_moe = {
    .family = "lfm2_moe",
    .gguf = "lfm2moe",
    .model_type = "lfm2_moe",
    .hf_class = "Lfm2MoeForCausalLM",
    .act_key = "",
    KEYS(decoder_keys, moe_keys, moe_bias_keys, shortconv_keys),
    TENSORS(shortconv_rest, decoder_ends, decoder_attention_tensors, tensors, shortconv_tensors,
            experts),
    .derive = derive_mixture,
    .layer = layer,
};
