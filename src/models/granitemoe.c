/* SPDX-License-Identifier: Apache-2.0
 * granitemoe.c: GraniteMoeForCausalLM and GraniteMoeSharedForCausalLM: Granite with a mixture of
 * experts, the latter with a shared one beside them. GraniteMoeSWAForCausalLM has windows, sinks
 * and a rotary base of each layer's kind. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/granite.h"

#define MLP "{m}layers.{i}.block_sparse_moe."

const struct tensor granitemoe_experts[] = {
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.layer.weight|" MLP "router.weight", "experts",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "input_linear.weight|" MLP "experts.gate_up_proj",
           "expert_ffn", "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "input_linear.weight|" MLP "experts.gate_up_proj",
           "expert_ffn", "width", REQUIRED, .from_hf = "experts part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "output_linear.weight|" MLP "experts.down_proj",
           "width", "expert_ffn", REQUIRED, .from_hf = "experts"),
    {0},
};

const struct tensor granitemoe_shared[] = {
    MATRIX("blk.{i}.ffn_gate_shexp.weight", "{m}layers.{i}.shared_mlp.input_linear.weight",
           "sparse*shared_ffn", "width", REQUIRED, .from_hf = "part(1,2*shared_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_shexp.weight", "{m}layers.{i}.shared_mlp.input_linear.weight",
           "sparse*shared_ffn", "width", REQUIRED, .from_hf = "part(1,2*shared_ffn,shared_ffn)"),
    MATRIX("blk.{i}.ffn_down_shexp.weight", "{m}layers.{i}.shared_mlp.output_linear.weight",
           "width", "sparse*shared_ffn", REQUIRED),
    {0},
};

/* Of layers with windows; there llama.cpp leaves gate and up as they are. */
#define FUSED(ours, theirs, rows, part_)                                                          \
    MATRIX("blk.{i}." ours ".weight", NULL, rows, "width", OPTIONAL,                               \
           .gguf = "blk.{i}." theirs ".weight", .from_gguf = (part_))
static const struct tensor windowed[] = {
    VECTOR("blk.{i}.attn_sinks.weight", "{m}layers.{i}.self_attn.sinks", "heads", REQUIRED),
    FUSED("ffn_gate_exps", "ffn_gate_up_exps", "expert_ffn", "experts part(1,2*expert_ffn,0)"),
    FUSED("ffn_up_exps", "ffn_gate_up_exps", "expert_ffn",
          "experts part(1,2*expert_ffn,expert_ffn)"),
    FUSED("ffn_gate_shexp", "ffn_up_shexp", "shared_ffn", "part(1,2*shared_ffn,0)"),
    FUSED("ffn_up_shexp", "ffn_up_shexp", "shared_ffn", "part(1,2*shared_ffn,shared_ffn)"),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = granite_derive(b, error);
    if (s != OB_OK) return s;
    return moe_sizes(b, &(struct route_args){.score = ROUTE_SOFTMAX_CHOSEN}, error);
}

/* The base of window or of full layers, 0: they have no rope. All of a kind must have the same. */
static ob_status read_base(struct build *b, bool window, double *base, ob_error *error) {
    static const char key[] = "layer_rope_theta";
    struct hparams *hp = b->hp;
    bool first = true;
    for (uint32_t i = 0; i < hp->layers; i++) {
        double v;
        if ((hp->window[i] > 0) != window) continue;
        if (!build_f64_at(b, NULL, key, i, &v) || v < 0)
            return build_refuse(b, OB_ERR_FORMAT, key, key, error, "must be %u numbers >= 0",
                                hp->layers);
        if (!first && v != *base)
            return build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error,
                                "layers of one kind (layer_types) have different bases");
        *base = v;
        first = false;
        hp->no_rope[i] = v == 0;
    }
    return OB_OK;
}

static ob_status derive_swa(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    double base[2] = {0, 0};
    ob_status s = derive(b, error);
    if (s != OB_OK) return s;
    if (!decoder_layer_types(b))
        for (uint32_t i = 0; i < hp->layers; i++) hp->window[i] = i % 4 ? hp->window_size : 0;
    if (!build_has(b, NULL, "layer_rope_theta")) return OB_OK;
    build_wants(b, NULL, "layer_rope_theta", hp->layers);
    for (int k = 0; s == OB_OK && k < 2; k++) s = read_base(b, k, &base[k], error);
    struct str type;
    static const char scaled[] =
        "rope_parameters.rope_type|rope_scaling.rope_type|rope_scaling.type";
    if (build_str(b, NULL, scaled, &type) && !str_is(type, "default"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, scaled, scaled, error,
                            "bases of layers of their own are not scaled");
    for (int k = 0; s == OB_OK && k < 2; k++) {
        struct rope_source from = {.hf = "", .base_key_hf = "", .base = (float)base[k]};
        if (base[k] > 0) s = rope_read(b, &from, k ? &hp->rope_window : &hp->rope, error);
    }
    return s;
}

#define GRANITE_MOE(...)                                                                        \
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, granite_keys, moe_keys),         \
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, ##__VA_ARGS__,  \
            granitemoe_experts, granitemoe_shared),                                             \
    .layer = decoder_paired_layer

const struct recipe model_granitemoe = {
    .family = "granitemoe",
    .gguf = "granitemoe",
    .model_type = "granitemoe",
    .hf_class = "GraniteMoeForCausalLM",
    .foreign = "routed_scaling_factor",
    .derive = derive,
    GRANITE_MOE(),
};

const struct recipe model_granitemoeshared = {
    .family = "granitemoeshared",
    .written_as = "granitemoe",
    .model_type = "granitemoeshared",
    .hf_class = "GraniteMoeSharedForCausalLM",
    .foreign = "routed_scaling_factor",
    .derive = derive,
    GRANITE_MOE(),
};

const struct recipe model_granitemoe_swa = {
    .family = "granitemoe_swa",
    .written_as = "granite_swa",
    .model_type = "granitemoe_swa",
    .hf_class = "GraniteMoeSWAForCausalLM",
    .foreign = "routed_scaling_factor",
    .derive = derive_swa,
    GRANITE_MOE(windowed),
};
