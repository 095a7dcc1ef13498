/* SPDX-License-Identifier: Apache-2.0
 * falcon_h1.c: FalconH1ForCausalLM: attention and Mamba-2 beside each other in every layer, with
 * multipliers everywhere. llama.cpp's converter multiplies weights by them, so its files have none;
 * ours keep weights and multipliers. */
#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/mamba2.h"

#define FACTOR(name) REAL(name, NULL, name, OPTIONAL, 1, 0, 0)

static const struct key keys[] = {
    FACTOR("embedding_multiplier"),
    FACTOR("lm_head_multiplier"),
    FACTOR("key_multiplier"),
    FACTOR("attention_in_multiplier"),
    FACTOR("attention_out_multiplier"),
    FACTOR("ssm_in_multiplier"),
    FACTOR("ssm_out_multiplier"),
    {0},
};

#define MLP "{m}layers.{i}.feed_forward."

static const struct tensor tensors[] = {
    VECTOR("output_norm.weight", "{m}final_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.pre_ff_layernorm.weight", "width", REQUIRED,
           .gguf = "blk.{i}.ffn_norm|blk.{i}.ffn_norm.weight"),
    MATRIX("blk.{i}.ffn_gate.weight", MLP "gate_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "down_proj.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_gate.bias", MLP "gate_proj.bias", "mlp_bias*ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", MLP "up_proj.bias", "mlp_bias*ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", MLP "down_proj.bias", "mlp_bias*width", REQUIRED),
    {0},
};

/* Element i of a list of factors. */
static float factor_at(struct build *b, const char *list, uint64_t i) {
    double v = 1;
    build_f64_at(b, NULL, list, i, &v);
    return (float)v;
}

/* Whether the states' outputs have a norm, and before their gate; in GGUF as llama.cpp has it. */
static ob_status read_norm(struct build *b, ob_error *error) {
    bool gguf = source_kind(b->meta) == SOURCE_GGUF, first = !gguf;
    bool norm = gguf && source_tensor_find(b->source, STR_LIT("blk.0.ssm_norm.weight"));
    ob_status s = build_flag(b, NULL, "mamba_rms_norm", &norm, error);
    if (s == OB_OK) s = build_flag(b, NULL, "mamba_norm_before_gate", &first, error);
    if (s == OB_OK) s = build_set(b, "mamba_norm", norm, error);
    return s == OB_OK ? build_set(b, "norm_first", first, error) : s;
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) s = read_norm(b, error);
    if (s == OB_OK) s = mamba2_sizes(b, error);
    build_wants(b, NULL, "mlp_multipliers", 2);
    if (s == OB_OK) s = build_set(b, "gate_factor", factor_at(b, "mlp_multipliers", 0), error);
    if (s == OB_OK) s = build_set(b, "down_factor", factor_at(b, "mlp_multipliers", 1), error);
    if (s != OB_OK) return s;
    hp->recurrent = arena_array(b->arena, hp->layers, sizeof *hp->recurrent);
    if (!hp->recurrent) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) hp->recurrent[i] = 1;
    hp->embed_scale = (float)build_number(b, "embedding_multiplier");
    hp->logit_scale = (float)build_number(b, "lm_head_multiplier");
    hp->attention_scale *= (float)build_number(b, "key_multiplier");
    build_wants(b, NULL, "ssm_multipliers", 5);
    return OB_OK;
}

static value_id times(struct build *b, value_id x, const char *name) {
    float factor = (float)build_number(b, name);
    return factor == 1 ? x : graph_scale(b->g, x, factor);
}

/* The factors of the projection's columns, by what they are: gate, values, B, C, step sizes. */
static struct weight *factors(struct build *b) {
    uint32_t inner = build_whole(b, "inner"), heads = build_whole(b, "mamba_heads"),
             bc = build_whole(b, "groups") * build_whole(b, "state"), at = 0;
    const uint32_t cols[5] = {inner, inner, bc, bc, heads};
    uint32_t total = 2 * inner + 2 * bc + heads;
    if (!build_has(b, NULL, "ssm_multipliers")) return NULL;
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *factor = arena_array(b->arena, total, sizeof *factor);
    if (!w || !factor) {
        b->g->failed = true;
        return NULL;
    }
    for (uint32_t k = 0; k < 5; k++)
        for (uint32_t i = 0; i < cols[k]; i++) factor[at++] = factor_at(b, "ssm_multipliers", k);
    *w = (struct weight){.name = "factors",
                         .quant = quant_list[QUANT_f32],
                         .rows = 1,
                         .cols = total,
                         .row_bytes = total * sizeof *factor,
                         .data = factor};
    return w;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    const struct mamba2_args mamba = {.act = b->hp->act,
                                      .norm_eps = b->hp->eps,
                                      .norm_first = build_whole(b, "norm_first"),
                                      .factors = factors(b)};
    value_id m = mamba2_mixer(b, times(b, x, "ssm_in_multiplier"), &mamba);
    value_id a = decoder_attention(b, times(b, x, "attention_in_multiplier"), args);
    return graph_add(b->g, times(b, m, "ssm_out_multiplier"),
                     times(b, a, "attention_out_multiplier"));
}

static value_id mlp(struct build *b, value_id x, const struct decoder_args *unused) {
    (void)unused;
    value_id gate = times(b, block_linear(b, x, "ffn_gate"), "gate_factor");
    value_id h = graph_glu(b->g, gate, block_linear(b, x, "ffn_up"), b->hp->act);
    return times(b, block_linear(b, h, "ffn_down"), "down_factor");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer, .mlp = mlp});
}

const struct recipe model_falcon_h1 = {
    .family = "falcon_h1",
    .gguf = "falcon-h1",
    .gguf_is_theirs = true,
    .model_type = "falcon_h1",
    .hf_class = "FalconH1ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mamba2_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            mamba2_tensors),
    .derive = derive,
    .layer = layer,
};
