/* SPDX-License-Identifier: Apache-2.0
 *
 * dory.c: DoryForCausalLM: a normalised transformer (nGPT, arXiv 2410.01131): every state has
 * length 1, a sub-layer's output is approached at a rate for each column, learned scales follow q,
 * the gates and the MLP's halves. The middle layers run several times, each time from the first
 * ones' output and with keys and values of their own. In published files attention and MLP are
 * layers of their own: {s} and {h} count them. */
#include <math.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    WHOLE("first", NULL, "n_input_layers", OPTIONAL, 16, 0, 8192),
    WHOLE("last", NULL, "n_output_layers", OPTIONAL, 16, 0, 8192),
    WHOLE("loops", NULL, "n_recurrent_loops", OPTIONAL, 2, 1, 64),
    REAL("alpha", NULL, "ngpt_alpha_init", OPTIONAL, 0.05, 0, 0),
    REAL("spread", NULL, "initializer_range", OPTIONAL, 0.0177, 1e-9, 1),
    {0},
};

/* As transformers writes them, and as published. */
#define SELF(name) "{m}layers.{i}.self_attn." name "|{m}layers.{s}.mixer." name
#define MLP(name) "{m}layers.{i}.mlp." name "|{m}layers.{h}.mixer." name

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output.scale", "lm_head.logit_scale", "vocab", REQUIRED),
    MATRIX("blk.{i}.attn_q.weight", SELF("q_proj.weight"), "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", SELF("k_proj.weight"), "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", SELF("v_proj.weight"), "kv_heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_gate.weight", SELF("g_proj.weight"), "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", SELF("o_proj.weight"), "width", "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_q.scale", SELF("sqk"), "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_gate.scale", SELF("s_gate"), "heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_rate", "{m}layers.{i}.lambda_1|{m}layers.{s}.attn_alpha", "width",
           REQUIRED, .from_hf = "abs"),
    MATRIX("blk.{i}.ffn_gate.weight", MLP("gate_proj.weight"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP("up_proj.weight"), "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP("down_proj.weight"), "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_gate.scale", MLP("suv_gate"), "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_up.scale", MLP("suv_up"), "ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_rate", "{m}layers.{i}.lambda_2|{m}layers.{h}.mlp_alpha", "width",
           REQUIRED, .from_hf = "abs"),
    {0},
};

/* From layers of attention or an MLP to layers of both. */
static ob_status pair_layers(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    bool pairs = hp->layers % 2 == 0;
    for (uint32_t i = 1; i < hp->layers; i += 2) pairs &= decoder_type_is(b, i, "mlp");
    uint32_t first = build_whole(b, "first"), last = build_whole(b, "last");
    if (!pairs || first % 2 || last % 2 || first + last > hp->layers)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "layer_types", error,
                            "is not attention and mlp in turn, %u first and %u last of %u", first,
                            last, hp->layers);
    hp->layers /= 2;
    const uint32_t first_pair = first / 2, last_pair = last / 2;
    ob_status s = build_set(b, "first", first_pair, error);
    if (s == OB_OK) s = build_set(b, "last", last_pair, error);
    hp->shared_from = arena_array(b->arena, hp->layers, sizeof *hp->shared_from);
    hp->shared_use = arena_array(b->arena, hp->layers, sizeof *hp->shared_use);
    if (!hp->shared_from || !hp->shared_use)
        return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        hp->shared_from[i] = 2 * i;
        hp->shared_use[i] = 2 * i + 2;
    }
    return s;
}

static ob_status read_rope(struct build *b, const char *hf, const char *old, float base,
                           struct rope *out, ob_error *error) {
    return rope_read(
        b, &(struct rope_source){.hf = hf, .base_key_hf = old, .base = base, .scaled = true}, out,
        error);
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct plain plain[] = {{NULL, "attention_bias", 0, 0, "biases of attention"},
                                         {NULL, "mlp_bias", 0, 0, "biases of the MLP"},
                                         {0}};
    struct hparams *hp = b->hp;
    struct str mode;
    if (build_str(b, NULL, "recurrent_kv_cache_mode", &mode) && !str_is(mode, "per_loop"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "recurrent_kv_cache_mode", error,
                            "keys of the last loop for all loops: only per_loop is supported");
    hp->norm = NORM_L2_SUM;
    hp->bare_norms = true;
    hp->eps = 1e-6f;
    ob_status s = pair_layers(b, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s == OB_OK)
        s = read_rope(b, "rope_parameters.full_attention", "rope_theta", 1e7f, &hp->rope, error);
    if (s == OB_OK)
        s = read_rope(b, "rope_parameters.sliding_attention", "rope_local_base_freq", 1e4f,
                      &hp->rope_window, error);
    if (s != OB_OK) return s;
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->window[i] = decoder_type_is(b, 2 * i, "sliding_attention") ? hp->window_size : 0;
    hp->logit_scale = (float)(1 / build_number(b, "spread"));
    return OB_OK;
}

static value_id unit(struct build *b, value_id x) { return block_norm(b, x, NULL, NULL); }

/* Over each run of so many columns. */
static value_id unit_of(struct build *b, value_id x, uint32_t width) {
    return graph_norm(b->g, x, NULL, NULL, b->hp->norm, b->hp->eps, width);
}

/* x * (w * scale)^2 */
static value_id squared(struct build *b, value_id x, const char *name, double scale) {
    struct weight *w = build_weight(b, name);
    x = graph_affine(b->g, graph_affine(b->g, x, w, NULL), w, NULL);
    return graph_scale(b->g, x, (float)(scale * scale));
}

/* x + |rate| * (to - x) */
static value_id approach(struct build *b, value_id x, value_id to, const char *rate) {
    float scale = (float)(build_number(b, "alpha") / build_number(b, "spread"));
    value_id way = graph_add(b->g, to, graph_scale(b->g, x, -1));
    way = graph_affine(b->g, way, build_weight(b, rate), NULL);
    return graph_add(b->g, x, graph_scale(b->g, way, scale));
}

static value_id attend(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    uint32_t i = b->layer, dim = hp->k_dim;
    double spread = build_number(b, "spread");
    struct weight *w[4] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight"), build_weight(b, "attn_gate.weight")};
    value_id out[4], table = block_rope_table(b, hp->window[i] > 0);
    graph_linear(b->g, x, 4, w, NULL, out);
    value_id q = graph_rope(b->g, unit_of(b, out[0], dim), table, hp->heads[i], dim, false);
    value_id k = graph_rope(b->g, unit_of(b, out[1], dim), table, hp->kv_heads[i], dim, false);
    q = squared(b, q, "attn_q.scale", sqrt(dim) / spread);
    value_id mixed = graph_attention(b->g, q, k, out[2],
                                     &(struct attention_args){.heads = hp->heads[i],
                                                              .kv_heads = hp->kv_heads[i],
                                                              .k_dim = dim,
                                                              .v_dim = dim,
                                                              .window = hp->window[i],
                                                              .scale = hp->attention_scale});
    value_id gate = squared(b, out[3], "attn_gate.scale", sqrt(sqrt(hp->width)) / spread);
    mixed = graph_glu(b->g, gate, mixed, ACT_SIGMOID);
    return block_linear(b, unit_of(b, mixed, hp->heads[i] * dim), "attn_output");
}

static value_id feed(struct build *b, value_id x) {
    struct weight *w[2] = {build_weight(b, "ffn_up.weight"), build_weight(b, "ffn_gate.weight")};
    float scale = sqrtf((float)b->hp->width);
    value_id out[2];
    graph_linear(b->g, x, 2, w, NULL, out);
    value_id up = graph_affine(b->g, out[0], build_weight(b, "ffn_up.scale"), NULL);
    value_id gate = graph_affine(b->g, out[1], build_weight(b, "ffn_gate.scale"), NULL);
    x = graph_glu(b->g, graph_scale(b->g, gate, scale), graph_scale(b->g, up, scale), b->hp->act);
    return block_linear(b, unit_of(b, x, b->hp->ffn[b->layer]), "ffn_down");
}

static value_id run(struct build *b, value_id x, uint32_t from, uint32_t to) {
    for (b->layer = from; b->layer < to; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = unit(b, x);
        x = unit(b, approach(b, x, unit(b, attend(b, x)), "attn_rate"));
        x = approach(b, x, unit(b, feed(b, x)), "ffn_rate");
    }
    return x;
}

static value_id body(struct build *b, value_id x) {
    uint32_t first = build_whole(b, "first"), end = b->hp->layers - build_whole(b, "last");
    x = run(b, x, 0, first);
    value_id input = unit(b, x);
    for (uint32_t loop = 0; loop < build_whole(b, "loops"); loop++)
        x = run(b, graph_add(b->g, unit(b, x), input), first, end);
    return run(b, x, end, b->hp->layers);
}

const struct recipe model_dory = {
    .family = "dory",
    .model_type = "dory",
    .hf_class = "DoryForCausalLM",
    .foreign = "rope_local_base_freq|rope_theta",
    .roots = "backbone.",
    KEYS(decoder_keys, decoder_window_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .body = body,
};
