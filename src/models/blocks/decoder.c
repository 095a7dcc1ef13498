/* SPDX-License-Identifier: Apache-2.0
 * decoder.c: see decoder.h. */
#include "models/blocks/decoder.h"

#include <math.h>

#include "base/error.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

#define FIELD(name) offsetof(struct hparams, name)

const struct key decoder_keys[] = {
    {"{arch}.block_count", "num_hidden_layers", KEY_U32, FIELD(layers), REQUIRED, 0, 1, 4096},
    {"{arch}.embedding_length", "hidden_size", KEY_U32, FIELD(width), REQUIRED, 0, 1, 1 << 20},
    {"{arch}.context_length", "max_position_embeddings", KEY_U32, FIELD(context), REQUIRED, 0, 1,
     1 << 30},
    {"{arch}.attention.head_count", "num_attention_heads", KEY_LAYERS, FIELD(heads), REQUIRED, 0, 1,
     1024},
    {"{arch}.attention.head_count_kv", "num_key_value_heads", KEY_LAYERS, FIELD(kv_heads), OPTIONAL,
     0, 0, 1024},
    {"{arch}.feed_forward_length", "intermediate_size", KEY_LAYERS, FIELD(ffn), REQUIRED, 0, 1,
     1 << 24},
    {"{arch}.attention.key_length", "head_dim", KEY_U32, FIELD(k_dim), OPTIONAL, 0, 1, 4096},
    {"{arch}.attention.value_length", NULL, KEY_U32, FIELD(v_dim), OPTIONAL, 0, 1, 4096},
    {"{arch}.attention.layer_norm_rms_epsilon", "rms_norm_eps", KEY_F32, FIELD(eps), REQUIRED, 0, 0,
     1},
    {"{arch}.rope.dimension_count", NULL, KEY_U32, FIELD(rope_dim), OPTIONAL, 0, 2, 4096},
    {0},
};

const struct tensor decoder_tensors[] = {
    {"token_embd.weight", "model.embed_tokens.weight", "vocab", "width", REQUIRED, AS_IS, NULL},
    {"output.weight", "lm_head.weight", "vocab", "width", OPTIONAL, AS_IS, NULL},
    {"blk.{i}.attn_v.weight", "model.layers.{i}.self_attn.v_proj.weight", "kv_heads*v_dim", "width",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_output.weight", "model.layers.{i}.self_attn.o_proj.weight", "width",
     "heads*v_dim", REQUIRED, AS_IS, NULL},
    {"blk.{i}.ffn_gate.weight", "model.layers.{i}.mlp.gate_proj.weight", "ffn", "width", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.ffn_up.weight", "model.layers.{i}.mlp.up_proj.weight", "ffn", "width", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.ffn_down.weight", "model.layers.{i}.mlp.down_proj.weight", "width", "ffn", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.attn_rot_embd", "model.layers.{i}.self_attn.rotary_emb.inv_freq", "rope_half",
     "rope_half", UNUSED, AS_IS, "frequencies are computed from the keys"},
    {"rope_freqs.weight", NULL, NULL, "rope_half", UNUSED, AS_IS,
     "used through the rope frequencies"},
    {0},
};

const struct tensor decoder_qk_tensors[] = {
    {"blk.{i}.attn_q.weight", "model.layers.{i}.self_attn.q_proj.weight", "heads*k_dim", "width",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_k.weight", "model.layers.{i}.self_attn.k_proj.weight", "kv_heads*k_dim", "width",
     REQUIRED, AS_IS, NULL},
    {0},
};

const struct tensor decoder_qkv_bias_tensors[] = {
    {"blk.{i}.attn_q.bias", "model.layers.{i}.self_attn.q_proj.bias", NULL, "heads*k_dim", REQUIRED,
     AS_IS, NULL},
    {"blk.{i}.attn_k.bias", "model.layers.{i}.self_attn.k_proj.bias", NULL, "kv_heads*k_dim",
     REQUIRED, AS_IS, NULL},
    {"blk.{i}.attn_v.bias", "model.layers.{i}.self_attn.v_proj.bias", NULL, "kv_heads*v_dim",
     REQUIRED, AS_IS, NULL},
    {0},
};

bool decoder_layer_types(struct build *b) {
    struct hparams *hp = b->hp;
    if (source_kind(b->source) != SOURCE_HF || source_count(b->source, "layer_types") != hp->layers)
        return false;
    for (uint32_t i = 0; i < hp->layers; i++) {
        struct str type;
        bool slides =
            source_str(b->source, "layer_types", i, &type) && str_is(type, "sliding_attention");
        hp->window[i] = slides ? hp->window_size : 0;
    }
    return true;
}

ob_status decoder_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    for (uint32_t i = 0; i < hp->layers; i++) {
        if (hp->kv_heads[i] == 0 && source_count(b->source, "{arch}.attention.head_count_kv") == 0)
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
        if (hp->width % hp->heads[0])
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.embedding_length", "hidden_size", error,
                                "is no multiple of the heads and no head size is given");
        hp->k_dim = hp->width / hp->heads[0];
    }
    if (hp->v_dim == 0) hp->v_dim = hp->k_dim;
    hp->attention_scale = 1.0f / sqrtf((float)hp->k_dim);
    hp->embed_scale = 1;
    hp->window = arena_array(b->arena, hp->layers, sizeof *hp->window);
    hp->experts = arena_array(b->arena, hp->layers, sizeof *hp->experts);
    if (!hp->window || !hp->experts) return error_memory(error, "hyperparameters", hp->layers);
    return OB_OK;
}

ob_status decoder_derive(struct build *b, ob_error *error) {
    ob_status s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    return rope_read(b,
                     &(struct rope_source){.hf = "rope_parameters",
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = 10000,
                                           .scaled = true},
                     &b->hp->rope, error);
}

static value_id rms(struct build *b, value_id x, const char *name, uint32_t width) {
    struct weight *w = build_weight(b, name);
    return w ? graph_norm(b->g, x, w, NULL, NORM_RMS, b->hp->eps, width) : x;
}

static value_id table(struct build *b, bool window) {
    const struct rope *r = window && b->hp->rope_window.freq ? &b->hp->rope_window : &b->hp->rope;
    value_id *made = r == &b->hp->rope ? &b->table : &b->table_window;
    if (*made == NO_VALUE) *made = graph_rope_table(b->g, r->freq, r->half, r->magnitude);
    return *made;
}

static value_id attention(struct build *b, value_id x, const struct decoder_args *args) {
    const struct hparams *hp = b->hp;
    uint32_t i = b->layer;
    struct weight *w[3] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight")};
    struct weight *bias[3] = {build_weight(b, "attn_q.bias"), build_weight(b, "attn_k.bias"),
                              build_weight(b, "attn_v.bias")};
    value_id out[3], rope = table(b, hp->window[i] > 0);
    graph_linear(b->g, x, 3, w, bias, out);
    value_id q = rms(b, out[0], "attn_q_norm.weight", hp->k_dim);
    value_id k = rms(b, out[1], "attn_k_norm.weight", hp->k_dim);
    q = graph_rope(b->g, q, rope, hp->heads[i], hp->k_dim, args->interleaved);
    k = graph_rope(b->g, k, rope, hp->kv_heads[i], hp->k_dim, args->interleaved);
    value_id mixed = graph_attention(b->g, q, k, out[2],
                                     &(struct attention_args){.heads = hp->heads[i],
                                                              .kv_heads = hp->kv_heads[i],
                                                              .k_dim = hp->k_dim,
                                                              .v_dim = hp->v_dim,
                                                              .window = hp->window[i],
                                                              .scale = hp->attention_scale,
                                                              .softcap = hp->attention_softcap});
    return graph_linear1(b->g, mixed, build_weight(b, "attn_output.weight"),
                         build_weight(b, "attn_output.bias"));
}

static value_id mlp(struct build *b, value_id x, enum act_kind act) {
    struct weight *w[2] = {build_weight(b, "ffn_gate.weight"), build_weight(b, "ffn_up.weight")};
    struct weight *bias[2] = {build_weight(b, "ffn_gate.bias"), build_weight(b, "ffn_up.bias")};
    value_id out[2];
    graph_linear(b->g, x, 2, w, bias, out);
    return graph_linear1(b->g, graph_glu(b->g, out[0], out[1], act),
                         build_weight(b, "ffn_down.weight"), build_weight(b, "ffn_down.bias"));
}

value_id decoder_layer(struct build *b, value_id x, const struct decoder_args *args) {
    uint32_t width = b->hp->width;
    value_id h = attention(b, rms(b, x, "attn_norm.weight", width), args);
    x = graph_add(b->g, x, rms(b, h, "post_attention_norm.weight", width));
    h = rms(b, x, "ffn_norm.weight", width);
    h = b->hp->experts[b->layer] ? moe_mlp(b, h, args->act) : mlp(b, h, args->act);
    return graph_add(b->g, x, rms(b, h, "post_ffw_norm.weight", width));
}
