/* SPDX-License-Identifier: Apache-2.0
 * falcon_h1.c: FalconH1ForCausalLM: attention and Mamba-2 beside each other in every layer, with
 * multipliers everywhere. In GGUF the weights have been multiplied by them. */
#include <string.h>

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

enum { COLUMNS = 5 };
static const char *const column_factor[COLUMNS] = {"factor_0", "factor_1", "factor_2", "factor_3",
                                                   "factor_4"};

/* Element i of a list of factors. */
static ob_status read_factor(struct build *b, const char *name, const char *list, uint64_t i,
                             ob_error *error) {
    double v = 1;
    build_f64_at(b, NULL, list, i, &v);
    return build_set(b, name, v, error);
}

static ob_status read_factors(struct build *b, ob_error *error) {
    build_wants(b, NULL, "mlp_multipliers", 2);
    build_wants(b, NULL, "ssm_multipliers", COLUMNS);
    ob_status s = read_factor(b, "gate_factor", "mlp_multipliers", 0, error);
    if (s == OB_OK) s = read_factor(b, "down_factor", "mlp_multipliers", 1, error);
    for (uint64_t i = 0; s == OB_OK && i < COLUMNS; i++)
        s = read_factor(b, column_factor[i], "ssm_multipliers", i, error);
    if (s != OB_OK || source_kind(b->source) != SOURCE_GGUF) return s;
    for (size_t i = 0; s == OB_OK && keys[i].name; i++) s = build_set(b, keys[i].name, 1, error);
    if (s == OB_OK) s = build_set(b, "gate_factor", 1, error);
    if (s == OB_OK) s = build_set(b, "down_factor", 1, error);
    for (uint32_t i = 0; s == OB_OK && i < COLUMNS; i++)
        s = build_set(b, column_factor[i], 1, error);
    return s;
}

/* Of column i of the states' projection, by what it is: gate, values, B, C or a step size. */
static float factor_of_column(const struct build *b, uint32_t i) {
    uint32_t inner = build_whole(b, "inner"),
             bc = build_whole(b, "groups") * build_whole(b, "state");
    const uint32_t end[COLUMNS - 1] = {inner, 2 * inner, 2 * inner + bc, 2 * inner + 2 * bc};
    uint32_t k = 0;
    while (k < COLUMNS - 1 && i >= end[k]) k++;
    return (float)build_number(b, column_factor[k]);
}

static float gguf_factor(const struct build *b, const char *name, uint32_t r) {
    static const struct {
        const char *name, *factor; /* of names that begin so */
    } list[] = {
        {"token_embd.", "embedding_multiplier"},
        {"output.", "lm_head_multiplier"},
        {"blk.{i}.attn_q.weight", "attention_in_multiplier"},
        {"blk.{i}.attn_k.weight", "attention_in_multiplier"},
        {"blk.{i}.attn_k.", "key_multiplier"},
        {"blk.{i}.attn_v.weight", "attention_in_multiplier"},
        {"blk.{i}.attn_output.", "attention_out_multiplier"},
        {"blk.{i}.ffn_gate.", "gate_factor"},
        {"blk.{i}.ffn_down.", "down_factor"},
        {"blk.{i}.ssm_in.weight", "ssm_in_multiplier"},
        {"blk.{i}.ssm_out.", "ssm_out_multiplier"},
    };
    float factor = str_starts(str_of(name), "blk.{i}.ssm_in.") ? factor_of_column(b, r) : 1;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (str_starts(str_of(name), list[i].name))
            factor *= (float)build_number(b, list[i].factor);
    return factor;
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
    if (s == OB_OK) s = read_factors(b, error);
    if (s != OB_OK) return s;
    hp->recurrent = arena_array(b->arena, hp->layers, sizeof *hp->recurrent);
    if (!hp->recurrent) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) hp->recurrent[i] = 1;
    hp->embed_scale = (float)build_number(b, "embedding_multiplier");
    hp->logit_scale = (float)build_number(b, "lm_head_multiplier");
    hp->attention_scale *= (float)build_number(b, "key_multiplier");
    return OB_OK;
}

static value_id times(struct build *b, value_id x, const char *name) {
    float factor = (float)build_number(b, name);
    return factor == 1 ? x : graph_scale(b->g, x, factor);
}

/* The factors of the projection's columns. */
static struct weight *factors(struct build *b) {
    uint32_t inner = build_whole(b, "inner"), heads = build_whole(b, "mamba_heads"),
             bc = build_whole(b, "groups") * build_whole(b, "state");
    uint32_t total = 2 * inner + 2 * bc + heads;
    bool any = false;
    for (uint32_t k = 0; k < COLUMNS; k++) any |= build_number(b, column_factor[k]) != 1;
    if (!any) return NULL;
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    float *factor = arena_array(b->arena, total, sizeof *factor);
    if (!w || !factor) {
        b->g->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < total; i++) factor[i] = factor_of_column(b, i);
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
    .model_type = "falcon_h1",
    .hf_class = "FalconH1ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mamba2_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            mamba2_tensors),
    .derive = derive,
    .layer = layer,
    .gguf_factor = gguf_factor,
};
