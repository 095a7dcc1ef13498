/* SPDX-License-Identifier: Apache-2.0
 * hybrid.c: see hybrid.h. */
#include "models/blocks/hybrid.h"

#include "base/error.h"
#include "models/blocks/decoder.h"

#define FIELD(name) offsetof(struct hparams, name)

const struct key recurrent_keys[] = {
    {"{arch}.block_count", "num_hidden_layers|num_blocks|n_layer", KEY_U32, FIELD(layers), REQUIRED,
     0, 1, 4096, NULL},
    {"{arch}.embedding_length", "hidden_size|embedding_dim|d_model", KEY_U32, FIELD(width),
     REQUIRED, 0, 1, 1 << 20, NULL},
    {"{arch}.context_length", "max_position_embeddings|context_length", KEY_U32, FIELD(context),
     OPTIONAL, 1 << 20, 1, 1 << 30, NULL}, /* a state has no end of its own */
    {"{arch}.attention.layer_norm_rms_epsilon|{arch}.attention.layer_norm_epsilon",
     "layer_norm_epsilon|norm_eps|rms_norm_eps", KEY_F32, FIELD(eps), OPTIONAL, 1e-5, 0, 1, NULL},
    {0},
};

#define MLP "{m}layers.{i}.feed_forward."

const struct tensor hybrid_feed_forward[] = {
    VECTOR("output_norm.weight", "{m}final_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", "{m}layers.{i}.pre_ff_layernorm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate.weight", MLP "gate_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "down_proj.weight", "width", "ffn", REQUIRED),
    {0},
};

static ob_status arrays(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t **const list[] = {&hp->heads, &hp->kv_heads, &hp->ffn, &hp->window, &hp->chunk,
                               &hp->experts, &hp->recurrent};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (*list[i]) continue;
        *list[i] = arena_array(b->arena, hp->layers, sizeof **list[i]);
        if (!*list[i]) return error_memory(error, "hyperparameters", hp->layers);
    }
    hp->no_rope = arena_array(b->arena, hp->layers, sizeof *hp->no_rope);
    return hp->no_rope ? OB_OK : error_memory(error, "hyperparameters", hp->layers);
}

const struct tensor recurrent_ends[] = {
    MATRIX("token_embd.weight", "{m}embeddings.weight|{m}embedding.weight", "vocab", "width",
           REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}norm_f.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.norm.weight", "width", REQUIRED),
    {0},
};

ob_status recurrent_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = arrays(b, error);
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++) hp->recurrent[i] = 1;
    hp->embed_scale = hp->residual_scale = hp->logit_scale = 1;
    return s;
}

bool hybrid_is_recurrent(struct build *b, uint32_t layer) {
    return decoder_type_is(b, layer, "linear_attention") || decoder_type_is(b, layer, "mamba") ||
           decoder_type_is(b, layer, "conv");
}

static bool is_in_gguf(struct build *b, uint32_t layer) {
    uint32_t interval = 0;
    bool recurrent;
    if (build_bool_at(b, "{arch}.attention.recurrent_layers", NULL, layer, &recurrent))
        return recurrent;
    if (build_count(b, "{arch}.attention.head_count_kv", NULL) > 1) return !b->hp->kv_heads[layer];
    if (!build_u32(b, "{arch}.full_attention_interval", NULL, &interval) || interval == 0)
        return false;
    return (layer + 1) % interval != 0;
}

ob_status hybrid_read(struct build *b, bool (*is)(struct build *b, uint32_t layer),
                      ob_error *error) {
    struct hparams *hp = b->hp;
    hp->recurrent = arena_array(b->arena, hp->layers, sizeof *hp->recurrent);
    if (!hp->recurrent) return error_memory(error, "hyperparameters", hp->layers);
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->recurrent[i] = gguf ? is_in_gguf(b, i) : is(b, i);
    return OB_OK;
}

ob_status hybrid_sizes(struct build *b, bool (*is)(struct build *b, uint32_t layer),
                       ob_error *error) {
    ob_status s = hybrid_read(b, is, error);
    return s == OB_OK ? decoder_sizes(b, error) : s;
}

ob_status recurrent_check_act(struct build *b, ob_error *error) {
    static const char keys[] = "mamba_hidden_act|hidden_mamba_act";
    struct str act;
    if (!build_str(b, NULL, keys, &act) || str_is(act, "silu") || str_is(act, "swish"))
        return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, keys, keys, error,
                        "activation \"%.*s\" is not supported in recurrent layers", STR_ARG(act));
}
