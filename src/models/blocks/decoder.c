/* SPDX-License-Identifier: Apache-2.0
 * decoder.c: see decoder.h. */
#include "models/blocks/decoder.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

#define FIELD(name) offsetof(struct hparams, name)

const struct key decoder_keys[] = {
    {"{arch}.block_count", "num_hidden_layers|n_layer|n_layers|num_layers|layers_block_type",
     KEY_COUNT, FIELD(layers), REQUIRED, 0, 1, 4096, NULL},
    {"{arch}.embedding_length", "hidden_size|n_embd|d_model|dim", KEY_U32, FIELD(width), REQUIRED,
     0, 1, 1 << 20, NULL},
    {"{arch}.context_length",
     "max_position_embeddings|n_positions|max_seq_len|n_ctx|seq_length|max_sequence_length",
     KEY_U32, FIELD(context), OPTIONAL, 0, 1, 1 << 30, NULL},
    {"{arch}.attention.head_count",
     "num_attention_heads|n_head|n_heads|num_heads|attention_heads", KEY_LAYERS, FIELD(heads),
     REQUIRED, 0, 1, 1024, NULL},
    {"{arch}.attention.head_count_kv", "num_key_value_heads", KEY_LAYERS, FIELD(kv_heads), OPTIONAL,
     0, 0, 1024, NULL},
    {"{arch}.feed_forward_length",
     "intermediate_size|n_inner|ffn_dim|ffn_hidden_size|dff|hidden_dim", KEY_LAYERS,
     FIELD(ffn), OPTIONAL, 0, 0, 1 << 24, NULL},
    {"{arch}.attention.key_length", "head_dim", KEY_U32, FIELD(k_dim), OPTIONAL, 0, 1, 4096, NULL},
    {"{arch}.attention.value_length", NULL, KEY_U32, FIELD(v_dim), OPTIONAL, 0, 1, 4096, NULL},
    {"{arch}.attention.layer_norm_rms_epsilon|{arch}.attention.layer_norm_epsilon",
     "rms_norm_eps|layer_norm_eps|layer_norm_epsilon|norm_eps|norm_epsilon|layernorm_epsilon",
     KEY_F32, FIELD(eps), OPTIONAL, -1, 0, 1, NULL},
    {"{arch}.rope.dimension_count", NULL, KEY_U32, FIELD(rope_dim), OPTIONAL, 0, 2, 4096, NULL},
    {0},
};

const struct key decoder_window_keys[] = {
    {"{arch}.attention.sliding_window", "sliding_window", KEY_U32, FIELD(window_size), OPTIONAL, 0,
     0, 0, NULL},
    {0},
};

const struct key decoder_bias_keys[] = {
    WHOLE("attention_bias", NULL, "attention_bias", OPTIONAL, 0, 0, 1),
    WHOLE("mlp_bias", NULL, "mlp_bias", OPTIONAL, 0, 0, 1),
    {0},
};

#define ENDS(read_)                                                                             \
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", read_, "width", REQUIRED),            \
        MATRIX("output.weight",                                                                 \
               "lm_head.weight|language_model.lm_head.weight|text_model.lm_head.weight",        \
               "vocab", "width", OPTIONAL),                                                     \
        VECTOR("output_norm.weight", "{m}norm.weight", "width", REQUIRED),                      \
        KNOWN("blk.{i}.attn_rot_embd", "{m}layers.{i}.self_attn.rotary_emb.inv_freq",           \
              "frequencies are computed from the keys"), {0}

const struct tensor decoder_ends[] = {ENDS("vocab")};
const struct tensor decoder_wide_ends[] = {ENDS("read")};

const struct tensor decoder_norms[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight", "width",
           REQUIRED),
    {0},
};

const struct tensor decoder_norm_biases[] = {
    VECTOR("blk.{i}.attn_norm.bias", "{m}layers.{i}.input_layernorm.bias", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", "{m}layers.{i}.post_attention_layernorm.bias", "width",
           REQUIRED),
    VECTOR("output_norm.bias", "{m}norm.bias", "width", REQUIRED),
    {0},
};

const struct tensor decoder_sandwich[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.pre_feedforward_layernorm.weight", "width",
           REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_feedforward_layernorm.weight",
           "width", REQUIRED),
    {0},
};

const struct tensor decoder_after_norms[] = {
    VECTOR("blk.{i}.post_attention_norm.weight", "{m}layers.{i}.post_attention_layernorm.weight",
           "width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm.weight", "{m}layers.{i}.post_feedforward_layernorm.weight",
           "width", REQUIRED),
    {0},
};

const struct tensor decoder_attention_tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", "{m}layers.{i}.self_attn.q_proj.weight", "heads*k_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", "{m}layers.{i}.self_attn.k_proj.weight", "kv_heads*k_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", "{m}layers.{i}.self_attn.v_proj.weight", "kv_heads*v_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    {0},
};

const struct tensor decoder_paired[] = {
    MATRIX("blk.{i}.attn_q.weight", "{m}layers.{i}.self_attn.q_proj.weight", "heads*k_dim",
           "width", REQUIRED, .from_hf = "pairs(heads)"),
    MATRIX("blk.{i}.attn_k.weight", "{m}layers.{i}.self_attn.k_proj.weight", "kv_heads*k_dim",
           "width", REQUIRED, .from_hf = "pairs(kv_heads)"),
    MATRIX("blk.{i}.attn_v.weight", "{m}layers.{i}.self_attn.v_proj.weight", "kv_heads*v_dim",
           "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", "{m}layers.{i}.self_attn.o_proj.weight", "width",
           "heads*v_dim", REQUIRED),
    {0},
};

const struct tensor decoder_qkv_biases[] = {
    VECTOR("blk.{i}.attn_q.bias", "{m}layers.{i}.self_attn.q_proj.bias",
           "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", "{m}layers.{i}.self_attn.k_proj.bias",
           "kv_heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", "{m}layers.{i}.self_attn.v_proj.bias",
           "kv_heads*v_dim", REQUIRED),
    {0},
};

/* GGUF files have some of the biases, config.json's keys mean all. */
#define OUTPUT_BIAS(...)                                                                        \
    VECTOR("blk.{i}.attn_output.bias", "{m}layers.{i}.self_attn.o_proj.bias",                   \
           "attends*attention_bias*width", OPTIONAL, ##__VA_ARGS__)
#define INPUT_BIASES(turn_q, turn_k)                                                            \
    VECTOR("blk.{i}.attn_q.bias", "{m}layers.{i}.self_attn.q_proj.bias",                        \
           "attention_bias*heads*k_dim", REQUIRED, .from_hf = (turn_q)),                        \
    VECTOR("blk.{i}.attn_k.bias", "{m}layers.{i}.self_attn.k_proj.bias",                        \
           "attention_bias*kv_heads*k_dim", REQUIRED, .from_hf = (turn_k)),                     \
    VECTOR("blk.{i}.attn_v.bias", "{m}layers.{i}.self_attn.v_proj.bias",                        \
           "attention_bias*kv_heads*v_dim", REQUIRED)

const struct tensor decoder_attention_biases[] = {
    INPUT_BIASES(NULL, NULL),
    OUTPUT_BIAS(.needed = "by_config"),
    {0},
};

const struct tensor decoder_input_biases[] = {
    INPUT_BIASES(NULL, NULL),
    OUTPUT_BIAS(),
    {0},
};

const struct tensor decoder_paired_biases[] = {
    INPUT_BIASES("pairs(heads)", "pairs(kv_heads)"),
    OUTPUT_BIAS(.needed = "by_config"),
    {0},
};

#define PLAIN_MLP_BIASES                                                                        \
    VECTOR("blk.{i}.ffn_up.bias", "{m}layers.{i}.mlp.up_proj.bias", "mlp_bias*ffn", REQUIRED),  \
    VECTOR("blk.{i}.ffn_down.bias", "{m}layers.{i}.mlp.down_proj.bias",                         \
           "mlp_bias*ffn/ffn*width", REQUIRED)

const struct tensor decoder_mlp_biases[] = {
    VECTOR("blk.{i}.ffn_gate.bias", "{m}layers.{i}.mlp.gate_proj.bias", "mlp_bias*ffn", OPTIONAL,
           .needed = "by_config"),
    PLAIN_MLP_BIASES,
    {0},
};

const struct tensor decoder_plain_mlp_biases[] = {
    PLAIN_MLP_BIASES,
    {0},
};

const struct tensor decoder_qk_norms[] = {
    VECTOR("blk.{i}.attn_q_norm.weight", "{m}layers.{i}.self_attn.q_norm.weight",
           "attends*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", "{m}layers.{i}.self_attn.k_norm.weight",
           "attends*k_dim", REQUIRED),
    {0},
};

const struct tensor decoder_wide_qk_norms[] = {
    VECTOR("blk.{i}.attn_q_norm.weight", "{m}layers.{i}.self_attn.q_norm.weight", "heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", "{m}layers.{i}.self_attn.k_norm.weight",
           "kv_heads*k_dim", REQUIRED),
    {0},
};

const struct tensor decoder_mlp[] = {
    MATRIX("blk.{i}.ffn_gate.weight", "{m}layers.{i}.mlp.gate_proj.weight", "ffn", "width",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.down_proj.weight", "width", "ffn",
           REQUIRED),
    {0},
};

const struct tensor decoder_gguf_qkv[] = {
    MATRIX("blk.{i}.attn_q.weight", NULL, "heads*k_dim", "width", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.weight", .from_gguf = Q_OF_QKV),
    VECTOR("blk.{i}.attn_q.bias", NULL, "heads*k_dim", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.bias", .from_gguf = Q_OF_QKV),
    MATRIX("blk.{i}.attn_k.weight", NULL, "kv_heads*k_dim", "width", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.weight", .from_gguf = K_OF_QKV),
    VECTOR("blk.{i}.attn_k.bias", NULL, "kv_heads*k_dim", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.bias", .from_gguf = K_OF_QKV),
    MATRIX("blk.{i}.attn_v.weight", NULL, "kv_heads*v_dim", "width", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.weight", .from_gguf = V_OF_QKV),
    VECTOR("blk.{i}.attn_v.bias", NULL, "kv_heads*v_dim", OPTIONAL,
           .gguf = "blk.{i}.attn_qkv.bias", .from_gguf = V_OF_QKV),
    {0},
};

const struct tensor decoder_fused_mlp[] = {
    MATRIX("blk.{i}.ffn_gate.weight", "{m}layers.{i}.mlp.gate_up_proj.weight", "ffn", "width",
           REQUIRED, .from_hf = GATE_OF_TWO, .gguf = "blk.{i}.ffn_up.weight",
           .from_gguf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.gate_up_proj.weight", "ffn", "width",
           REQUIRED, .from_hf = UP_OF_TWO, .from_gguf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.down_proj.weight", "width", "ffn",
           REQUIRED),
    {0},
};

const struct tensor decoder_plain_mlp[] = {
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.down_proj.weight", "width", "ffn",
           REQUIRED),
    {0},
};

bool decoder_type_is(struct build *b, uint32_t layer, const char *type) {
    struct str is;
    return build_str_at(b, NULL, "layer_types|layers_block_type", layer, &is) && str_is(is, type);
}

/* A boolean a layer, or every how many layers one is full. */
static const char window_pattern[] = "{arch}.attention.sliding_window_pattern";

bool decoder_layer_types(struct build *b) {
    struct hparams *hp = b->hp;
    bool slides, gguf = source_kind(b->meta) == SOURCE_GGUF;
    uint64_t count = build_count(b, window_pattern, "layer_types");
    if (count != hp->layers + (gguf ? hp->predictors : 0)) return false;
    for (uint32_t i = 0; i < hp->layers; i++) {
        uint64_t number = 0; /* some converters write 0 and 1 */
        if (!gguf) slides = decoder_type_is(b, i, "sliding_attention");
        else if (build_u64_at(b, window_pattern, NULL, i, &number)) slides = number != 0;
        else if (!build_bool_at(b, window_pattern, NULL, i, &slides)) return false;
        hp->window[i] = slides ? hp->window_size : 0;
    }
    return true;
}

void decoder_ffn_times(struct build *b, uint32_t times) {
    struct hparams *hp = b->hp;
    for (uint32_t i = 0; i < hp->layers; i++)
        if (hp->ffn[i] == 0) hp->ffn[i] = times * hp->width;
}

void decoder_window_period(struct build *b, uint32_t period, bool full_first) {
    struct hparams *hp = b->hp;
    static const char periods[] = "sliding_window_pattern|global_attn_every_n_layers";
    build_has(b, window_pattern, periods); /* files with layer_types may have words in it */
    if (decoder_layer_types(b)) return;
    build_u32(b, window_pattern, periods, &period);
    for (uint32_t i = 0; i < hp->layers; i++) {
        bool full = period && (full_first ? i % period == 0 : (i + 1) % period == 0);
        hp->window[i] = full ? 0 : hp->window_size;
    }
}

void decoder_rope_in_windows(struct build *b) {
    for (uint32_t i = 0; i < b->hp->layers; i++) b->hp->no_rope[i] = b->hp->window[i] == 0;
}

/* GGUF has no key for biases: they are where the first layer has one, perhaps not all. */
static ob_status read_biases(struct build *b, ob_error *error) {
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    ob_status s = build_set(b, "by_config", !gguf, error);
    if (s != OB_OK || !gguf) return s;
    bool attention = source_tensor_find(b->source, STR_LIT("blk.0.attn_q.bias")) ||
                     source_tensor_find(b->source, STR_LIT("blk.0.attn_qkv.bias"));
    bool mlp = source_tensor_find(b->source, STR_LIT("blk.0.ffn_up.bias"));
    s = build_set(b, "attention_bias", attention, error);
    return s == OB_OK ? build_set(b, "mlp_bias", mlp, error) : s;
}

/* What a family may have set when its files have no key for it. */
static ob_status check_given(struct build *b, ob_error *error) {
    const struct hparams *hp = b->hp;
    uint32_t ffn = hp->ffn[0]; /* of a hybrid: of any layer */
    for (uint32_t i = 0; hp->recurrent && i < hp->layers; i++) ffn |= hp->ffn[i];
    for (const struct key *k = decoder_keys; k->gguf; k++)
        if ((k->field == FIELD(context) && hp->context == 0) ||
            (k->field == FIELD(ffn) && ffn == 0 && !hp->expert_count) ||
            (k->field == FIELD(eps) && hp->eps < 0))
            return build_refuse(b, OB_ERR_FORMAT, k->gguf, k->hf, error,
                                "required key is missing");
    return OB_OK;
}

/* GGUF counts layers that predict further tokens, config.json does not. */
static ob_status drop_predictors(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    if (source_kind(b->meta) != SOURCE_GGUF) return OB_OK;
    if (hp->predictors >= hp->layers)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.nextn_predict_layers", "", error,
                            "%u of %u layers", hp->predictors, hp->layers);
    hp->layers -= hp->predictors;
    return OB_OK;
}

ob_status decoder_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = check_given(b, error);
    if (s == OB_OK) s = drop_predictors(b, error);
    if (s != OB_OK) return s;
    uint32_t heads = 0; /* of a layer with attention */
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (hp->recurrent && hp->recurrent[i]) {
            hp->heads[i] = hp->kv_heads[i] = 0;
            continue;
        }
        heads = hp->heads[i];
        if (hp->kv_heads[i] == 0 && !build_has(b, "{arch}.attention.head_count_kv", NULL))
            hp->kv_heads[i] = hp->heads[i]; /* no key: as many as query heads */
        if (hp->kv_heads[i] == 0)
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.head_count_kv",
                                "num_key_value_heads", error,
                                "this family has no layers without attention (layer %u)", i);
        if (hp->heads[i] % hp->kv_heads[i])
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.head_count",
                                "num_attention_heads", error,
                                "is no multiple of the key heads (layer %u)", i);
    }
    if (hp->k_dim == 0) {
        if (heads == 0 || hp->width % heads)
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.embedding_length", "hidden_size", error,
                                "is no multiple of the heads and no head size is given");
        hp->k_dim = hp->width / heads;
    }
    if (hp->v_dim == 0) hp->v_dim = hp->k_dim;
    hp->attention_scale = 1.0f / sqrtf((float)hp->k_dim);
    hp->embed_scale = hp->residual_scale = hp->logit_scale = hp->value_scale = 1;
    hp->window = arena_array(b->arena, hp->layers, sizeof *hp->window);
    hp->chunk = arena_array(b->arena, hp->layers, sizeof *hp->chunk);
    hp->no_rope = arena_array(b->arena, hp->layers, sizeof *hp->no_rope);
    hp->experts = arena_array(b->arena, hp->layers, sizeof *hp->experts);
    if (!hp->window || !hp->chunk || !hp->no_rope || !hp->experts)
        return error_memory(error, "hyperparameters", hp->layers);
    return read_biases(b, error);
}

ob_status decoder_written(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t written = build_whole(b, "written");
    if (written > hp->vocab) {
        error_set(error, OB_ERR_FORMAT, "%u tokens are to be written, the embedding has %u",
                  written, hp->vocab);
        error_at(error, source_path(b->source), "token_embd.weight", OB_NO_OFFSET);
        return OB_ERR_FORMAT;
    }
    ob_status s = build_set(b, "read", hp->vocab, error);
    if (written > 0) hp->vocab = written;
    return s;
}

ob_status decoder_derive(struct build *b, ob_error *error) {
    ob_status s = decoder_sizes(b, error);
    return s == OB_OK ? rope_read_default(b, error) : s;
}

ob_status decoder_derive_layer_norms(struct build *b, ob_error *error) {
    b->hp->norm = NORM_LAYER;
    return decoder_derive(b, error);
}

ob_status decoder_derive_sliding(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    for (uint32_t i = 0; s == OB_OK && i < b->hp->layers; i++)
        b->hp->window[i] = b->hp->window_size;
    return s;
}

ob_status decoder_derive_types(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) decoder_layer_types(b);
    return s;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

value_id block_norm(struct build *b, value_id x, struct weight *w, struct weight *bias) {
    if (!w && !b->hp->bare_norms) return x;
    return graph_norm(b->g, x, w, bias, b->hp->norm, b->hp->eps, w ? w->cols : b->hp->width);
}

static void named(struct build *b, const char *name, struct weight **w, struct weight **bias) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    *w = build_weight(b, full);
    snprintf(full, sizeof full, "%s.bias", name);
    *bias = build_weight(b, full);
}

value_id block_norm_named(struct build *b, value_id x, const char *name) {
    struct weight *w, *bias;
    named(b, name, &w, &bias);
    return block_norm(b, x, w, bias);
}

value_id block_linear(struct build *b, value_id x, const char *name) {
    struct weight *w, *bias;
    named(b, name, &w, &bias);
    return graph_linear1(b->g, x, w, bias);
}

value_id block_residual(struct build *b, value_id x, value_id h) {
    float scale = b->hp->residual_scale;
    return graph_add(b->g, x, scale == 1 ? h : graph_scale(b->g, h, scale));
}

value_id block_rope(struct build *b, const struct rope *r) { return block_rope_back(b, r, 0); }

value_id block_rope_back(struct build *b, const struct rope *r, uint32_t back) {
    for (uint32_t i = 0; i < b->g->nodes; i++) { /* made before */
        const struct node *n = &b->g->node[i];
        if (n->op == OP_rope_table && n->u.rope_table.freq == r->freq &&
            n->u.rope_table.every == r->every && n->u.rope_table.back == back)
            return n->out[0];
    }
    return graph_rope_table(b->g, &(struct rope_table_args){.freq = r->freq,
                                                            .half = r->half,
                                                            .every = r->every,
                                                            .magnitude = r->magnitude,
                                                            .original = r->original,
                                                            .freq_long = r->freq_long,
                                                            .magnitude_long = r->magnitude_long,
                                                            .dynamic = r->dynamic,
                                                            .base = r->base,
                                                            .back = back});
}

value_id block_rope_table(struct build *b, bool window) {
    if (b->hp->layer_rope) return block_rope(b, b->hp->layer_rope[b->layer]);
    const struct rope *r = window && b->hp->rope_window.freq ? &b->hp->rope_window : &b->hp->rope;
    value_id *made = r == &b->hp->rope ? &b->table : &b->table_window;
    if (*made == NO_VALUE) *made = block_rope(b, r);
    return *made;
}

/* A norm after a sub-layer: where there is none nothing is computed, bare or not. */
static value_id norm_if_there(struct build *b, value_id x, const char *name) {
    struct weight *w, *bias;
    named(b, name, &w, &bias);
    return w ? block_norm(b, x, w, bias) : x;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Of q or k: over each head or the whole projection. */
static value_id qk_norm(struct build *b, value_id x, const char *name, uint32_t heads,
                        const struct decoder_args *args) {
    struct weight *w, *bias;
    named(b, name, &w, &bias);
    if (!w && !args->bare_qk_norm) return x;
    uint32_t width = args->wide_qk_norm ? heads * b->hp->k_dim : b->hp->k_dim;
    return graph_norm(b->g, x, w, bias, b->hp->norm, b->hp->eps, width);
}

static value_id rotate(struct build *b, value_id x, uint32_t heads,
                       const struct decoder_args *args) {
    uint32_t i = b->layer;
    if (b->hp->no_rope[i] || !b->hp->rope.freq) return x;
    return graph_rope(b->g, x, block_rope_table(b, b->hp->window[i] > 0), heads, b->hp->k_dim,
                      args->interleaved);
}

static value_id cut(struct build *b, value_id x) {
    float limit = b->hp->attention_clamp;
    return limit > 0 ? graph_clamp(b->g, x, -limit, limit) : x;
}

static value_id turn(struct build *b, value_id x, const char *norm, uint32_t heads,
                     const struct decoder_args *args) {
    if (args->late_qk_norm) return qk_norm(b, rotate(b, x, heads, args), norm, heads, args);
    x = qk_norm(b, x, norm, heads, args);
    return rotate(b, args->late_clamp ? cut(b, x) : x, heads, args);
}

value_id decoder_attention(struct build *b, value_id x, const struct decoder_args *args) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t i = b->layer;
    struct weight *w[4], *bias[4];
    value_id out[4];
    named(b, "attn_q", &w[0], &bias[0]);
    named(b, "attn_k", &w[1], &bias[1]);
    named(b, "attn_v", &w[2], &bias[2]);
    named(b, "attn_gate", &w[3], &bias[3]);
    graph_linear(g, x, w[3] ? 4 : 3, w, bias, out);
    for (int k = args->late_clamp ? 2 : 0; k < 3; k++) out[k] = cut(b, out[k]);
    value_id q = turn(b, out[0], "attn_q_norm", hp->heads[i], args);
    if (hp->query_beta != 0)
        q = graph_scale_position(g, q, hp->query_beta, 0, hp->query_period);
    value_id k = turn(b, out[1], "attn_k_norm", hp->kv_heads[i], args);
    if (args->query) q = args->query(b, q);
    if (args->turns_values) out[2] = rotate(b, out[2], hp->kv_heads[i], args);
    if (hp->value_scale != 1) out[2] = graph_scale(g, out[2], hp->value_scale);
    value_id selection = args->select ? args->select(b, x) : NO_VALUE;
    value_id mixed = graph_attention(g, q, k, out[2],
                                     &(struct attention_args){.heads = hp->heads[i],
                                                              .kv_heads = hp->kv_heads[i],
                                                              .k_dim = hp->k_dim,
                                                              .v_dim = hp->v_dim,
                                                              .window = hp->window[i],
                                                              .chunk = hp->chunk[i],
                                                              .scale = hp->attention_scale,
                                                              .softcap = hp->attention_softcap,
                                                              .alibi = hp->alibi,
                                                              .offsets = hp->offsets,
                                                              .reach = hp->reach,
                                                              .bidirectional = hp->bidirectional,
                                                              .selects = args->select != NULL,
                                                              .selection = selection,
                                                              .sinks = build_weight(
                                                                  b, "attn_sinks.weight")});
    enum act_kind gate = args->softplus_gate ? ACT_SOFTPLUS : ACT_SIGMOID;
    if (w[3]) mixed = graph_glu(g, out[3], mixed, gate);
    return block_linear(b, norm_if_there(b, mixed, "attn_sub_norm"), "attn_output");
}

/* ---- MLP ------------------------------------------------------------------------------------- */

static value_id mlp(struct build *b, value_id x) {
    struct weight *w[2], *bias[2];
    value_id out[2];
    named(b, "ffn_up", &w[0], &bias[0]);
    named(b, "ffn_gate", &w[1], &bias[1]);
    graph_linear(b->g, x, w[1] ? 2 : 1, w, bias, out);
    value_id h = w[1] ? graph_glu(b->g, out[1], out[0], b->hp->act)
                      : graph_act(b->g, out[0], b->hp->act);
    return block_linear(b, norm_if_there(b, h, "ffn_sub_norm"), "ffn_down");
}

value_id decoder_mlp_block(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    return b->hp->experts[b->layer] ? moe_mlp(b, x) : mlp(b, x);
}

/* ---- the layer ------------------------------------------------------------------------------- */

value_id decoder_layer(struct build *b, value_id x, const struct decoder_args *args) {
    value_id (*mixer)(struct build *, value_id, const struct decoder_args *) =
        args->mixer ? args->mixer : decoder_attention;
    value_id (*feed)(struct build *, value_id, const struct decoder_args *) =
        args->mlp ? args->mlp : decoder_mlp_block;
    value_id h = block_norm_named(b, x, "attn_norm");
    if (args->parallel) {
        value_id other = build_weight(b, "ffn_norm.weight") ? block_norm_named(b, x, "ffn_norm")
                                                            : h;
        value_id sum = graph_add(b->g, mixer(b, h, args), feed(b, other, args));
        return block_residual(b, x, sum);
    }
    h = norm_if_there(b, mixer(b, h, args), "post_attention_norm");
    x = norm_if_there(b, block_residual(b, x, h), "attn_output_norm");
    h = feed(b, block_norm_named(b, x, "ffn_norm"), args);
    x = block_residual(b, x, norm_if_there(b, h, "post_ffw_norm"));
    return norm_if_there(b, x, "layer_output_norm");
}

value_id decoder_plain_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){0});
}

value_id decoder_paired_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.interleaved = true});
}
