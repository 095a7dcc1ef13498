/* SPDX-License-Identifier: Apache-2.0
 *
 * gemma4.c: Gemma4ForCausalLM, Gemma4UnifiedForCausalLM: Gemma 3 with larger heads in full layers,
 * values normed without weights (in some models they are the keys), scores that are not scaled,
 * last layers that read the keys and values of the last own layer of their kind, a table of
 * embeddings for each layer, a mixture of experts beside the MLP, and a factor on each layer's
 * output. Norms' weights are not 1 + w. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/per_layer.h"
#include "models/blocks/rope.h"
#include "models/blocks/shared_kv.h"

static const struct key keys[] = {
    {"{arch}.final_logit_softcapping", "final_logit_softcapping", KEY_F32,
     offsetof(struct hparams, logit_softcap), OPTIONAL, 0, 0, 0, NULL},
    WHOLE("k_is_v", NULL, "attention_k_eq_v", OPTIONAL, 0, 0, 1),
    WHOLE("wide_mlp", NULL, "use_double_wide_mlp", OPTIONAL, 0, 0, 1),
    WHOLE("mixture", NULL, "enable_moe_block", OPTIONAL, 0, 0, 1),
    WHOLE("full_dim", "{arch}.attention.key_length", "global_head_dim", OPTIONAL, 0, 0, 4096),
    WHOLE("window_dim", "{arch}.attention.key_length_swa", "head_dim", OPTIONAL, 0, 0, 4096),
    WHOLE("full_v_dim", "{arch}.attention.value_length", NULL, OPTIONAL, 0, 0, 4096),
    WHOLE("window_v_dim", "{arch}.attention.value_length_swa", NULL, OPTIONAL, 0, 0, 4096),
    WHOLE("ple_wide", "{arch}.embedding_length_per_layer_input", NULL, REQUIRED, 0, 0, 1 << 16),
    WHOLE("full_heads", NULL, "num_global_key_value_heads", OPTIONAL, 0, 0, 1024),
    {0},
};

#define SELF "{m}layers.{i}.self_attn."
#define EXPERTS(ours, theirs, start)                                                             \
    MATRIX("blk.{i}." ours ".weight", "{m}layers.{i}.experts." theirs, "expert_ffn", "width",      \
           REQUIRED, .from_hf = "experts part(1,2*expert_ffn," start ")",                        \
           .gguf = "blk.{i}.ffn_gate_up_exps.weight",                                            \
           .from_gguf = "experts part(1,2*expert_ffn," start ")")

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_q.weight", SELF "q_proj.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", SELF "k_proj.weight", "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", SELF "v_proj.weight", "own_v*kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", SELF "v_proj.weight", "k_is_v*slides*kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", SELF "o_proj.weight", "width", "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", SELF "q_norm.weight", "k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k_norm.weight", SELF "k_norm.weight", "kv_heads/kv_heads*k_dim",
           REQUIRED),
    VECTOR("blk.{i}.layer_output_scale.weight", "{m}layers.{i}.layer_scalar", "1", OPTIONAL),
    VECTOR("blk.{i}.post_ffw_norm_1.weight", "{m}layers.{i}.post_feedforward_layernorm_1.weight",
           "sparse*width", REQUIRED),
    VECTOR("blk.{i}.pre_ffw_norm_2.weight", "{m}layers.{i}.pre_feedforward_layernorm_2.weight",
           "sparse*width", REQUIRED),
    VECTOR("blk.{i}.post_ffw_norm_2.weight", "{m}layers.{i}.post_feedforward_layernorm_2.weight",
           "sparse*width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", "{m}layers.{i}.router.proj.weight", "experts", "width",
           REQUIRED),
    VECTOR("blk.{i}.ffn_gate_inp.scale", "{m}layers.{i}.router.scale", "sparse*width", REQUIRED),
    VECTOR("blk.{i}.ffn_down_exps.scale", "{m}layers.{i}.router.per_expert_scale", "experts",
           REQUIRED),
    EXPERTS("ffn_gate_exps", "gate_up_proj", "0"),
    EXPERTS("ffn_up_exps", "gate_up_proj", "expert_ffn"),
    MATRIX("blk.{i}.ffn_down_exps.weight", "{m}layers.{i}.experts.down_proj", "width",
           "expert_ffn", REQUIRED, .from_hf = "experts"),
    {0},
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* What per_layer_config says of a layer, over what its kind has. */
static ob_status read_heads(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool listed = build_has(b, NULL, "per_layer_config");
    uint32_t full_heads = build_whole(b, "k_is_v") ? build_whole(b, "full_heads") : 0;
    uint32_t full_dim = build_whole(b, "full_dim"), window_dim = build_whole(b, "window_dim");
    if (full_dim == 0) full_dim = 512;
    if (window_dim == 0) window_dim = 256;
    hp->head_dim = arena_array(b->arena, hp->layers, sizeof *hp->head_dim);
    if (!hp->head_dim) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        char dim[64], heads[64];
        bool full = hp->window[i] == 0;
        hp->head_dim[i] = full && !listed ? full_dim : window_dim;
        if (full && !listed && full_heads > 0) hp->kv_heads[i] = full_heads;
        snprintf(dim, sizeof dim, "per_layer_config.%u.head_dim", i);
        snprintf(heads, sizeof heads, "per_layer_config.%u.num_key_value_heads", i);
        build_u32(b, NULL, dim, &hp->head_dim[i]);
        build_u32(b, NULL, heads, &hp->kv_heads[i]);
        if (hp->kv_heads[i] == 0 || hp->heads[i] % hp->kv_heads[i])
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.head_count_kv", heads, error,
                                "%u key heads, of %u heads", hp->kv_heads[i], hp->heads[i]);
        if (hp->head_dim[i] == 0 || hp->head_dim[i] > 4096)
            return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.key_length", dim, error,
                                "%u is not in 1 to 4096", hp->head_dim[i]);
    }
    return OB_OK;
}

/* The rope of the layers of a kind, all of whose heads are of one size. */
static ob_status read_rope(struct build *b, bool full, struct rope *out, ob_error *error) {
    const struct hparams *hp = b->hp;
    struct rope_source from = {
        .hf = full ? "rope_parameters.full_attention" : "rope_parameters.sliding_attention",
        .base_key_hf = "rope_theta",
        .base_key_gguf = full ? "{arch}.rope.freq_base" : "{arch}.rope.freq_base_swa",
        .base = full ? 1e6f : 10000,
        .scaled = full || source_kind(b->meta) == SOURCE_HF};
    for (uint32_t i = 0; i < hp->layers; i++) {
        if ((hp->window[i] == 0) != full) continue;
        if (from.head_dim == 0) from.head_dim = hp->head_dim[i];
        if (from.head_dim != hp->head_dim[i])
            return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.attention.key_length",
                                "per_layer_config", error,
                                "heads of %u and of %u among layers of one kind", from.head_dim,
                                hp->head_dim[i]);
    }
    if (from.head_dim == 0) return OB_OK; /* no such layers */
    if (!full) build_u32(b, "{arch}.rope.dimension_count_swa", NULL, &from.dim);
    ob_status s = build_set(b, full ? "full_dim" : "window_dim", from.head_dim, error);
    if (s == OB_OK) s = build_set(b, full ? "full_v_dim" : "window_v_dim", from.head_dim, error);
    return s == OB_OK ? rope_read(b, &from, out, error) : s;
}

/* A mixture in all layers, beside the MLP. */
static ob_status read_mixture(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    if (!(gguf ? hp->expert_count : build_whole(b, "mixture"))) {
        hp->expert_count = hp->route.used = 0;
        return OB_OK;
    }
    if (hp->expert_count == 0 || hp->expert_ffn == 0 || hp->route.used == 0 ||
        hp->route.used > hp->expert_count)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.expert_used_count", "top_k_experts", error,
                            "%u of %u experts of width %u", hp->route.used, hp->expert_count,
                            hp->expert_ffn);
    hp->route.score = ROUTE_SOFTMAX_CHOSEN;
    for (uint32_t i = 0; i < hp->layers; i++) hp->experts[i] = hp->expert_count;
    return OB_OK;
}

/* A file may say k_is_v by having no values. */
static ob_status find_values(struct build *b, ob_error *error) {
    if (source_kind(b->meta) == SOURCE_GGUF)
        for (uint32_t i = 0; i < b->hp->layers; i++) {
            char name[64];
            int n = snprintf(name, sizeof name, "blk.%u.attn_v.weight", i);
            if (b->hp->window[i] || b->hp->kv_heads[i] == 0) continue;
            bool has = source_tensor_find(b->source, (struct str){name, (size_t)n});
            ob_status s = build_set(b, "k_is_v", !has, error);
            if (s != OB_OK) return s;
            break;
        }
    return build_set(b, "own_v", 1 - build_number(b, "k_is_v"), error);
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, "attention_bias", 0, 0, "biases of attention"}, {0}};
    struct hparams *hp = b->hp;
    struct str both;
    if (build_str(b, NULL, "use_bidirectional_attention", &both) && str_is(both, "all"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "use_bidirectional_attention", error,
                            "attention to later tokens is not supported in this family");
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 6, false);
    hp->window[hp->layers - 1] = 0;
    hp->rope_dim = 0; /* the same in all files: the whole head */
    hp->embed_scale = sqrtf((float)hp->width);
    hp->attention_scale = 1;
    if ((s = read_heads(b, error)) != OB_OK) return s;
    if ((s = read_rope(b, true, &hp->rope, error)) != OB_OK) return s;
    if ((s = read_rope(b, false, &hp->rope_window, error)) != OB_OK) return s;
    if ((s = read_mixture(b, error)) != OB_OK) return s;
    if ((s = shared_kv_sizes(b, error)) != OB_OK) return s;
    if ((s = per_layer_sizes(b, error)) != OB_OK) return s;
    if ((s = build_set(b, "ple_wide", build_number(b, "ple"), error)) != OB_OK) return s;
    for (uint32_t i = 0; i < hp->layers && source_kind(b->meta) == SOURCE_HF; i++)
        if (hp->kv_heads[i] == 0 && build_whole(b, "wide_mlp")) hp->ffn[i] *= 2;
    return find_values(b, error);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static value_id normed(struct build *b, value_id x, const char *name) {
    uint32_t dim = b->hp->head_dim[b->layer];
    return graph_norm(b->g, x, name ? build_weight(b, name) : NULL, NULL, NORM_RMS, b->hp->eps,
                      dim);
}

static value_id attend(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    uint32_t i = b->layer, dim = hp->head_dim[i];
    struct weight *w[3] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight")};
    value_id out[3], table = block_rope_table(b, hp->window[i] > 0), k = NO_VALUE, v = NO_VALUE;
    graph_linear(b->g, x, !w[1] ? 1 : !w[2] ? 2 : 3, w, NULL, out);
    value_id q = graph_rope(b->g, normed(b, out[0], "attn_q_norm.weight"), table, hp->heads[i],
                            dim, false);
    if (hp->kv_heads[i] > 0) {
        k = normed(b, out[1], "attn_k_norm.weight");
        k = graph_rope(b->g, k, table, hp->kv_heads[i], dim, false);
        v = normed(b, out[w[2] ? 2 : 1], NULL);
    }
    return block_linear(b, shared_kv_attention(b, q, k, v), "attn_output");
}

static value_id gated_mlp(struct build *b, value_id x) {
    struct weight *w[2] = {build_weight(b, "ffn_up.weight"), build_weight(b, "ffn_gate.weight")};
    value_id out[2];
    graph_linear(b->g, x, 2, w, NULL, out);
    return block_linear(b, graph_glu(b->g, out[1], out[0], b->hp->act), "ffn_down");
}

/* Of the stream as it is before the MLP's norm. */
static value_id mixture(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    struct route_args router = hp->route;
    router.expert_scale = build_weight(b, "ffn_down_exps.scale");
    value_id h = graph_norm(b->g, x, build_weight(b, "ffn_gate_inp.scale"), NULL, NORM_RMS,
                            hp->eps, hp->width);
    h = block_linear(b, graph_scale(b->g, h, 1 / sqrtf((float)hp->width)), "ffn_gate_inp");
    return moe_experts(b, block_norm_named(b, x, "pre_ffw_norm_2"), h, &router);
}

static value_id layer(struct build *b, value_id x) {
    value_id h = attend(b, block_norm_named(b, x, "attn_norm"));
    x = graph_add(b->g, x, block_norm_named(b, h, "post_attention_norm"));
    h = gated_mlp(b, block_norm_named(b, x, "ffn_norm"));
    if (b->hp->experts[b->layer]) {
        value_id chosen = block_norm_named(b, mixture(b, x), "post_ffw_norm_2");
        h = graph_add(b->g, block_norm_named(b, h, "post_ffw_norm_1"), chosen);
    }
    return graph_add(b->g, x, block_norm_named(b, h, "post_ffw_norm"));
}

/* A vector of one number, at hand when the graph is built. */
static float output_scale(struct build *b) {
    const struct weight *w = build_weight(b, "layer_output_scale.weight");
    float scale = 1;
    if (w) memcpy(&scale, w->data, sizeof scale);
    return scale;
}

static value_id body(struct build *b, value_id x) {
    value_id inputs = per_layer_inputs(b, x);
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer(b, x);
        if (inputs != NO_VALUE) x = graph_add(b->g, x, per_layer_input(b, x, inputs));
        x = graph_scale(b->g, x, output_scale(b));
    }
    return x;
}

#define GEMMA4                                                                                     \
    .act = "gelu_pytorch_tanh", .act_key = "hidden_activation",                                    \
    KEYS(decoder_keys, decoder_window_keys, moe_keys, per_layer_keys,                \
         shared_kv_keys, keys),                       \
    TENSORS(decoder_ends, decoder_sandwich, per_layer_tensors, decoder_mlp, tensors,         \
            shared_kv_unused),              \
    .derive = derive, .body = body

const struct recipe model_gemma4_text = {
    .family = "gemma4",
    .gguf = "gemma4",
    .model_type = "gemma4_text",
    .hf_class = "Gemma4ForCausalLM",
    GEMMA4,
};

const struct recipe model_gemma4_unified_text = {
    .family = "gemma4_unified",
    .model_type = "gemma4_unified_text",
    .hf_class = "Gemma4UnifiedForCausalLM",
    GEMMA4,
};
