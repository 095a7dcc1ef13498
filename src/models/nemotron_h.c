/* SPDX-License-Identifier: Apache-2.0
 * nemotron_h.c: NemotronHForCausalLM: each layer is one sub-layer behind one norm: Mamba-2,
 * attention without positions, a plain MLP or a mixture of plain MLPs. transformers clamps step
 * sizes to time_step_min in a prompt but not in the tokens after it, which is not done here, and
 * does not read time_step_limit. */
#include <math.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mamba2.h"
#include "models/blocks/moe.h"

/* llama.cpp has the epsilon by the name of layer norms' here. */
static const struct key keys[] = {
    REAL("norm_eps", "{arch}.attention.layer_norm_epsilon", NULL, OPTIONAL, 0, 0, 0),
    {0},
};

#define AT(name) "{m}layers.{i}.mixer." name
#define EXPERT(name) AT("experts.{e}." name)

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}norm_f.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", AT("q_proj.weight"), "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", AT("k_proj.weight"), "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", AT("v_proj.weight"), "kv_heads*v_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", AT("o_proj.weight"), "width", "heads*v_dim", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", AT("up_proj.weight"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", AT("down_proj.weight"), "width", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", AT("gate.weight"), "experts", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", AT("gate.e_score_correction_bias"), "experts", REQUIRED),
    MATRIX("blk.{i}.ffn_up_exps.weight", EXPERT("up_proj.weight"), "expert_ffn", "width", REQUIRED,
           .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", EXPERT("down_proj.weight"), "width", "expert_ffn",
           REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_shexp.weight", AT("shared_experts.up_proj.weight"),
           "sparse*shared_ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", AT("shared_experts.down_proj.weight"), "width",
           "sparse*shared_ffn", REQUIRED),
    KNOWN("mtp.*", "mtp.*", "predicts further tokens"),
    {0},
};

/* Of the words of layers_block_type or the letters of hybrid_override_pattern. */
static bool is(struct build *b, uint32_t layer, const char *word, const char *other, char letter) {
    static const char letters[] = "hybrid_override_pattern";
    struct str pattern;
    if (decoder_type_is(b, layer, word) || decoder_type_is(b, layer, other)) return true;
    if (!build_str(b, NULL, letters, &pattern)) return false;
    if (pattern.n != b->hp->layers)
        build_wrong(b, letters, "has %zu letters, the model %u layers", pattern.n, b->hp->layers);
    return layer < pattern.n && pattern.p[layer] == letter;
}

static bool is_recurrent(struct build *b, uint32_t i) {
    return !is(b, i, "full_attention", "attention", '*');
}

/* One kind a layer: what it is not has no size. */
static void keep_one(struct build *b, uint32_t i, bool gguf) {
    struct hparams *hp = b->hp;
    bool wide = gguf && hp->heads[i] == 0 && hp->ffn[i] > 0; /* all of these are of one kind */
    bool moe = gguf ? wide && hp->expert_count > 0 : is(b, i, "moe", "moe", 'E');
    bool mlp = gguf ? wide && hp->expert_count == 0 : is(b, i, "mlp", "mlp", '-');
    if (hp->heads[i] || moe || mlp) hp->recurrent[i] = 0;
    if (!mlp) hp->ffn[i] = 0;
    hp->experts[i] = moe ? hp->expert_count : 0;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SIGMOID,
                                             .group = ROUTE_GROUP_TOP2,
                                             .normalize = true,
                                             .normalize_eps = 1e-20f};
    struct hparams *hp = b->hp;
    uint32_t *wide = arena_array(b->arena, hp->layers, sizeof *wide);
    if (!wide) return error_memory(error, "hyperparameters", hp->layers);
    memcpy(wide, hp->ffn, hp->layers * sizeof *wide);
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    ob_status s = hybrid_sizes(b, is_recurrent, error);
    if (s == OB_OK) s = mamba2_sizes(b, error);
    if (s == OB_OK && (build_number(b, "dt_min") > 0 || !isinf(build_number(b, "dt_max"))))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "time_step_limit", error,
                            "is not 0 to infinity, as the class has it whatever this says");
    if (s == OB_OK && hp->expert_count) {
        s = moe_sizes(b, &router, error);
        for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++) hp->ffn[i] = wide[i];
    }
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++) keep_one(b, i, gguf);
    return s == OB_OK ? build_set(b, "norm_eps", (double)hp->eps, error) : s;
}

static value_id sub_layer(struct build *b, value_id x) {
    const struct mamba2_args mamba = {.act = ACT_SILU, .norm_eps = b->hp->eps};
    const struct decoder_args plain = {0};
    if (b->hp->recurrent[b->layer]) return mamba2_mixer(b, x, &mamba);
    return b->hp->heads[b->layer] ? decoder_attention(b, x, &plain)
                                  : decoder_mlp_block(b, x, &plain);
}

static value_id layer(struct build *b, value_id x) {
    return graph_add(b->g, x, sub_layer(b, block_norm_named(b, x, "attn_norm")));
}

const struct recipe model_nemotron_h = {
    .family = "nemotron_h",
    .gguf = "nemotron_h",
    .also_gguf = "nemotron_h_moe",
    .model_type = "nemotron_h",
    .hf_class = "NemotronHForCausalLM",
    .roots = "backbone.|model.",
    KEYS(decoder_keys, moe_keys, mamba2_keys, keys),
    TENSORS(tensors, mamba2_tensors),
    .act = "relu2",
    .act_key = "mlp_hidden_act",
    .derive = derive,
    .layer = layer,
};
