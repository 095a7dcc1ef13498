/* SPDX-License-Identifier: Apache-2.0
 * deepseek_v4.c: DeepseekV4ForCausalLM: a window of keys that are values too, beside it in most
 * layers one key for every block of positions, of which an indexer chooses where blocks are small
 * (and overlap); the residual stream is several (blocks/streams.h), mixed by doubly stochastic
 * matrices; the experts of the first layers go by token id. Keys and values turn together, so what
 * attention finds turns back. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/blocks/streams.h"

static const struct key keys[] = {
    WHOLE("q_lora", "{arch}.attention.q_lora_rank", "q_lora_rank", REQUIRED, 0, 1, 1 << 16),
    WHOLE("o_groups", "{arch}.attention.output_group_count", "o_groups", OPTIONAL, 8, 1, 1024),
    WHOLE("o_lora", "{arch}.attention.output_lora_rank", "o_lora_rank", OPTIONAL, 1024, 1, 1 << 16),
    WHOLE("index_heads", "{arch}.attention.indexer.head_count", "index_n_heads", OPTIONAL, 64, 1,
          1024),
    WHOLE("index_dim", "{arch}.attention.indexer.key_length", "index_head_dim", OPTIONAL, 128, 2,
          4096),
    WHOLE("index_used", "{arch}.attention.indexer.top_k", "index_topk", OPTIONAL, 512, 1, 1 << 20),
    REAL("compress_base", "{arch}.attention.compress_rope_freq_base", "compress_rope_theta",
         OPTIONAL, 160000, 1, 0),
    WHOLE("streams", "{arch}.hyper_connection.count", "hc_mult", OPTIONAL, 4, 1, 32),
    WHOLE("hc_rounds", "{arch}.hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters", OPTIONAL,
          20, 1, 1000),
    REAL("hc_eps", "{arch}.hyper_connection.epsilon", "hc_eps", OPTIONAL, 1e-6, 0, 0),
    WHOLE("hash_layers", "{arch}.hash_layer_count", "num_hash_layers", OPTIONAL, 3, 0, 4096),
    {0},
};

#define LAYER "{m}layers.{i}."
#define ATTENTION LAYER "attn."
/* Weights of the streams: of a sub-layer's input, of its output, and of each for each. */
#define STREAMS(which)                                                                             \
    MATRIX("blk.{i}.hc_" which "_fn.weight", LAYER "hc_" which "_fn",                              \
           "2*streams+streams*streams", "streams*width", REQUIRED),                                \
    VECTOR("blk.{i}.hc_" which "_base.weight", LAYER "hc_" which "_base",                          \
           "2*streams+streams*streams", REQUIRED),                                                 \
    VECTOR("blk.{i}.hc_" which "_scale.weight", LAYER "hc_" which "_scale", "3", REQUIRED)
/* What makes a block's key; there is `on` only where the layer has it. */
#define COMPRESSOR(ours, theirs, on, dim)                                                          \
    MATRIX("blk.{i}." ours "_kv.weight", ATTENTION theirs ".wkv.weight",                           \
           on "*" dim "+chooses*" dim, "width", REQUIRED),                                         \
    MATRIX("blk.{i}." ours "_gate.weight", ATTENTION theirs ".wgate.weight",                       \
           on "*" dim "+chooses*" dim, "width", REQUIRED),                                         \
    MATRIX("blk.{i}." ours "_ape.weight", ATTENTION theirs ".ape", "every",                        \
           on "*" dim "+chooses*" dim, REQUIRED, .from_hf = "f32", .from_gguf = "f32"),            \
    VECTOR("blk.{i}." ours "_norm.weight", ATTENTION theirs ".norm.weight", on "*" dim, REQUIRED)

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight|{m}embed.weight", "vocab", "width",
           REQUIRED),
    MATRIX("output.weight", "head.weight|lm_head.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}norm.weight", "width", REQUIRED),
    MATRIX("output_hc_fn.weight", "{m}hc_head.hc_fn|{m}hc_head_fn", "streams", "streams*width",
           REQUIRED),
    VECTOR("output_hc_base.weight", "{m}hc_head.hc_base|{m}hc_head_base", "streams", REQUIRED),
    VECTOR("output_hc_scale.weight", "{m}hc_head.hc_scale|{m}hc_head_scale", "1", REQUIRED),
    STREAMS("attn"),
    STREAMS("ffn"),
    VECTOR("blk.{i}.attn_norm.weight", LAYER "attn_norm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", LAYER "ffn_norm.weight", "width", REQUIRED),
    MATRIX("blk.{i}.attn_q_a.weight", ATTENTION "wq_a.weight", "q_lora", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q_a_norm.weight", ATTENTION "q_norm.weight", "q_lora", REQUIRED),
    MATRIX("blk.{i}.attn_q_b.weight", ATTENTION "wq_b.weight", "heads*k_dim", "q_lora", REQUIRED),
    MATRIX("blk.{i}.attn_kv.weight", ATTENTION "wkv.weight", "k_dim", "width", REQUIRED),
    VECTOR("blk.{i}.attn_kv_a_norm.weight", ATTENTION "kv_norm.weight|" ATTENTION "norm.weight",
           "k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_sinks.weight", ATTENTION "attn_sink", "heads", REQUIRED),
    MATRIX("blk.{i}.attn_output_a.weight", ATTENTION "wo_a.weight", "o_lora",
           "heads*k_dim/o_groups", REQUIRED, .from_hf = "heads(o_lora,0,o_groups)",
           .from_gguf = "heads(o_lora,0,o_groups)"),
    MATRIX("blk.{i}.attn_output_b.weight", ATTENTION "wo_b.weight", "width", "o_groups*o_lora",
           REQUIRED),
    COMPRESSOR("attn_compressor", "compressor", "compresses", "k_dim"),
    COMPRESSOR("indexer_compressor", "indexer.compressor", "chooses", "index_dim"),
    MATRIX("blk.{i}.indexer.attn_q_b.weight", ATTENTION "indexer.wq_b.weight",
           "chooses*index_heads*index_dim", "q_lora", REQUIRED),
    MATRIX("blk.{i}.indexer.proj.weight", ATTENTION "indexer.weights_proj.weight",
           "chooses*index_heads", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", LAYER "ffn.gate.weight", "experts", "width", REQUIRED),
    VECTOR("blk.{i}.exp_probs_b.bias", LAYER "ffn.gate.bias", "ranks*experts", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_tid2eid.weight", LAYER "ffn.gate.tid2eid", "vocab", "hashes*used",
           REQUIRED, .from_hf = "below(experts)"),
    MATRIX("blk.{i}.ffn_gate_exps.weight", LAYER "ffn.experts.{e}.w1.weight", "expert_ffn",
           "width", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_up_exps.weight", LAYER "ffn.experts.{e}.w3.weight", "expert_ffn", "width",
           REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_down_exps.weight", LAYER "ffn.experts.{e}.w2.weight", "width",
           "expert_ffn", REQUIRED, .from_hf = "stack"),
    MATRIX("blk.{i}.ffn_gate_shexp.weight", LAYER "ffn.shared_experts.w1.weight", "shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up_shexp.weight", LAYER "ffn.shared_experts.w3.weight", "shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", LAYER "ffn.shared_experts.w2.weight", "width",
           "shared_ffn", REQUIRED),
    KNOWN("blk.{i}.exp_probs_b_vl.bias", NULL, "chooses experts of images"),
    {0},
};

/* ---- what the keys say ----------------------------------------------------------------------- */

/* Positions of a block in layers of small, overlapping blocks and in those of large ones. */
struct rates {
    uint32_t small, large;
};

/* One layer: by its name, its number in the released files, or the pattern of those. */
static ob_status read_layer(struct build *b, const struct rates *rates, uint32_t i,
                            ob_error *error) {
    static const char ratios[] = "{arch}.attention.compress_ratios", names[] = "layer_types";
    struct str type;
    uint64_t ratio = i < 2 || i % 2 == 0 ? 128 : 4;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    if (build_str_at(b, NULL, names, i, &type)) {
        ratio = str_is(type, "sliding_attention")              ? 0
                : str_is(type, "compressed_sparse_attention")  ? 4
                : str_is(type, "heavily_compressed_attention") ? 128
                                                               : 1;
        if (ratio == 1)
            return build_refuse(b, OB_ERR_UNSUPPORTED, names, names, error,
                                "\"%.*s\" of layer %u", STR_ARG(type), i);
    } else if (build_has(b, ratios, "compress_ratios") &&
               (!build_u64_at(b, ratios, "compress_ratios", i, &ratio) || ratio == 1 ||
                ratio > 1 << 16 || (!gguf && ratio != 0 && ratio != 4 && ratio != 128))) {
        return build_refuse(b, OB_ERR_UNSUPPORTED, ratios, "compress_ratios", error,
                            "must be 0, 4 or 128 (layer %u)", i);
    }
    b->hp->chooses[i] = ratio == 4;
    b->hp->every[i] = ratio == 4              ? rates->small
                      : ratio > 0 && !gguf    ? rates->large
                                              : (uint32_t)ratio;
    b->hp->window[i] = b->hp->window_size;
    b->hp->hashes[i] = i < build_whole(b, "hash_layers");
    if (build_str_at(b, NULL, "mlp_layer_types", i, &type))
        b->hp->hashes[i] = str_is(type, "hash_moe");
    return OB_OK;
}

static ob_status read_layers(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    struct rates rates = {4, 128};
    build_u32(b, NULL, "compress_rate_csa|compress_rates.compressed_sparse_attention",
              &rates.small);
    build_u32(b, NULL, "compress_rate_hca|compress_rates.heavily_compressed_attention",
              &rates.large);
    if (rates.small < 2 || rates.large < 2 || rates.small > 1 << 16 || rates.large > 1 << 16)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "compress_rates", error,
                            "blocks of %u and %u positions", rates.small, rates.large);
    hp->chooses = arena_array(b->arena, hp->layers, sizeof *hp->chooses);
    hp->hashes = arena_array(b->arena, hp->layers, sizeof *hp->hashes);
    hp->every = arena_array(b->arena, hp->layers, sizeof *hp->every);
    if (!hp->chooses || !hp->hashes || !hp->every)
        return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        ob_status s = read_layer(b, &rates, i, error);
        if (s != OB_OK) return s;
    }
    uint32_t hashes = 0; /* as GGUF counts them */
    while (hashes < hp->layers && hp->hashes[hashes]) hashes++;
    return build_set(b, "hash_layers", hashes, error);
}

/* The rope of layers with blocks: in older files that of the scaling's keys, by another base. */
static ob_status read_compressed(struct build *b, struct rope *out, ob_error *error) {
    bool nested = build_has(b, NULL, "rope_parameters.compress");
    float magnitude;
    ob_status s = rope_read(
        b,
        &(struct rope_source){.hf = nested ? "rope_parameters.compress" : "rope_parameters",
                              .base_key_hf = nested ? "rope_theta" : "compress_rope_theta",
                              .base_key_gguf = "{arch}.attention.compress_rope_freq_base",
                              .base = 160000,
                              .fixed_base = nested ? 0 : (float)build_number(b, "compress_base"),
                              .scaled = true,
                              .dim = nested ? 0 : 2 * b->hp->rope.half},
        out, error);
    if (s == OB_OK && out->original > 0)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.rope.scaling.type", "rope_parameters",
                            error, "\"%s\" of blocks of positions", out->scaling);
    /* Without a key of its own yarn leaves the sizes alone. */
    if (s == OB_OK && !nested &&
        !build_f32(b, NULL, "rope_parameters.attention_factor|rope_scaling.attention_factor",
                   &magnitude))
        out->magnitude = 1;
    return s;
}

static ob_status read_ropes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    struct rope *compressed = arena_alloc(b->arena, sizeof *compressed);
    hp->layer_rope = arena_array(b->arena, hp->layers, sizeof(const struct rope *));
    if (!compressed || !hp->layer_rope) return error_memory(error, "ropes", hp->layers);
    bool nested = build_has(b, NULL, "rope_parameters.main");
    uint32_t turns = 0;
    build_u32(b, NULL, "qk_rope_head_dim", &turns);
    ob_status s = rope_read(b,
                            &(struct rope_source){.hf = nested ? "rope_parameters.main" : "",
                                                  .base_key_hf = "rope_theta",
                                                  .base_key_gguf = "{arch}.rope.freq_base",
                                                  .base = 10000,
                                                  .scaled = nested,
                                                  .part = 64.0f / 512,
                                                  .dim = nested ? 0 : turns},
                            &hp->rope, error);
    if (s == OB_OK && hp->rope.original > 0)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "rope_parameters.main", error, "\"%s\"",
                            hp->rope.scaling);
    if (s == OB_OK) s = read_compressed(b, compressed, error);
    if (s == OB_OK && 2 * compressed->half > build_whole(b, "index_dim"))
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.indexer.key_length",
                            "index_head_dim", error, "%u, fewer than the %u that turn",
                            build_whole(b, "index_dim"), 2 * compressed->half);
    for (uint32_t i = 0; i < hp->layers; i++)
        hp->layer_rope[i] = hp->every[i] ? compressed : &hp->rope;
    return s;
}

static ob_status check_sizes(struct build *b, ob_error *error) {
    const struct hparams *hp = b->hp;
    if (hp->kv_heads[0] != 1)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.attention.head_count_kv",
                            "num_key_value_heads", error, "%u, must be 1", hp->kv_heads[0]);
    if (hp->window_size == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.sliding_window", "sliding_window",
                            error, "is missing or 0");
    if (hp->heads[0] % build_whole(b, "o_groups"))
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.output_group_count", "o_groups",
                            error, "%u groups of %u heads", build_whole(b, "o_groups"),
                            hp->heads[0]);
    return OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {
        .score = ROUTE_SQRT_SOFTPLUS, .normalize = true, .normalize_eps = 1e-20f, .scale = 1.5f};
    static const struct plain plain[] = {
        {NULL, "attention_bias", 0, 0, "biases of attention"},
        {NULL, "mlp_bias", 0, 0, "biases of experts"},
        {0},
    };
    struct hparams *hp = b->hp;
    struct str score = STR_LIT("sqrtsoftplus");
    float limit = 10;
    build_str(b, NULL, "scoring_func", &score);
    if (!str_is(score, "sqrtsoftplus"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "scoring_func", error,
                            "\"%.*s\", this family's router has roots of softplus",
                            STR_ARG(score));
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = build_plain(b, plain, error);
    if (s == OB_OK) s = check_sizes(b, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    if (s == OB_OK) s = build_set(b, "used", hp->route.used, error);
    if (s == OB_OK) s = read_layers(b, error);
    if (s == OB_OK) s = read_ropes(b, error);
    hp->route.normalize = true; /* whatever the file says */
    build_f32(b, "{arch}.swiglu_clamp_exp", "swiglu_limit", &limit);
    hp->glu_clamp = (struct glu_clamp){.alpha = 1, .limit = limit, .up_limit = limit};
    return s;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The last dimensions of each head turned. */
static value_id turn(struct build *b, value_id x, uint32_t heads, uint32_t dim,
                     const struct rope *rope) {
    struct graph *g = b->g;
    value_id table = block_rope(b, rope);
    uint32_t turns = 2 * rope->half, still = dim - turns;
    if (still == 0) return graph_rope(g, x, table, heads, dim, true);
    value_id turned = graph_rope(g, graph_slice(g, x, heads, dim, still, turns), table, heads,
                                 turns, true);
    return graph_concat(g, graph_slice(g, x, heads, dim, 0, still), still, turned, turns, heads);
}

/* Of each block of positions one key, in its last row. */
static value_id compress(struct build *b, value_id x, const char *name, uint32_t dim) {
    static const char *const part[] = {"kv", "gate", "ape", "norm"};
    struct weight *w[4];
    value_id out[2];
    struct rope rope = *b->hp->layer_rope[b->layer];
    rope.every = b->hp->every[b->layer];
    for (int i = 0; i < 4; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s_%s.weight", name, part[i]);
        w[i] = build_weight(b, full);
    }
    graph_linear(b->g, x, 2, w, NULL, out);
    value_id y = graph_compress(b->g, out[0], out[1], w[2], rope.every, b->hp->chooses[b->layer]);
    return turn(b, graph_norm(b->g, y, w[3], NULL, NORM_RMS, b->hp->eps, dim), 1, dim, &rope);
}

/* The blocks that a small attention of ReLUs in place of a softmax finds the most of. */
static value_id choose(struct build *b, value_id x, value_id latent) {
    uint32_t heads = build_whole(b, "index_heads"), dim = build_whole(b, "index_dim");
    value_id q = turn(b, block_linear(b, latent, "indexer.attn_q_b"), heads, dim,
                      b->hp->layer_rope[b->layer]);
    value_id weights = graph_scale(b->g, block_linear(b, x, "indexer.proj"),
                                   1 / sqrtf((float)heads * (float)dim));
    return graph_index_select(b->g, q, weights, compress(b, x, "indexer_compressor", dim),
                              build_whole(b, "index_used"), b->hp->every[b->layer]);
}

/* back: the layer's rope, turning the other way. */
static value_id attend(struct build *b, value_id x, const struct rope *back) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t heads = hp->heads[b->layer], dim = hp->k_dim;
    const struct rope *rope = hp->layer_rope[b->layer];
    struct attention_args args = {.heads = heads, .kv_heads = 1, .k_dim = dim, .v_dim = dim,
                                  .window = hp->window[b->layer], .scale = hp->attention_scale,
                                  .sinks = build_weight(b, "attn_sinks.weight"),
                                  .has_beside = hp->every[b->layer] > 0,
                                  .every = hp->every[b->layer],
                                  .selects = hp->chooses[b->layer]};
    struct weight *w[2] = {build_weight(b, "attn_q_a.weight"), build_weight(b, "attn_kv.weight")};
    value_id out[2];
    graph_linear(g, x, 2, w, NULL, out);
    value_id latent = block_norm_named(b, out[0], "attn_q_a_norm");
    value_id q = graph_norm(g, block_linear(b, latent, "attn_q_b"), NULL, NULL, NORM_RMS, hp->eps,
                            dim);
    value_id kv = turn(b, block_norm_named(b, out[1], "attn_kv_a_norm"), 1, dim, rope);
    if (args.has_beside) args.beside = compress(b, x, "attn_compressor", dim);
    if (args.selects) args.selection = choose(b, x, latent);
    value_id y = graph_attention(g, turn(b, q, heads, dim, rope), kv, kv, &args);
    y = turn(b, y, heads, dim, back);
    y = graph_linear_heads(g, y, build_weight(b, "attn_output_a.weight"));
    return block_linear(b, y, "attn_output_b");
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Each scale as often as it has columns. */
static struct weight *spread(struct build *b, const struct weight *w, uint32_t streams) {
    float each[32 * 34];
    const float *scale = w->data;
    uint32_t n = w->cols == 1 ? streams : streams * (streams + 2);
    for (uint32_t i = 0; i < n; i++) each[i] = scale[i < 2 * streams ? i / streams : 2];
    return streams_constant(b, n, each);
}

/* A weight of each stream: columns of the logits. */
static value_id share(struct build *b, value_id logits, uint32_t streams) {
    float eps[32];
    for (uint32_t i = 0; i < streams; i++) eps[i] = (float)build_number(b, "hc_eps");
    value_id w = graph_act(b->g, logits, ACT_SIGMOID);
    return graph_affine(b->g, w, NULL, streams_constant(b, streams, eps));
}

struct sub_layer {
    value_id input, mix; /* mix: weights of the streams, then of the output, for each new stream */
};

static struct sub_layer enter(struct build *b, value_id x, const char *fn, const char *scale,
                              const char *base) {
    struct graph *g = b->g;
    uint32_t n = build_whole(b, "streams"), all = n * (n + 2);
    value_id logits = streams_logits(b, x, build_weight(b, fn),
                                     spread(b, build_weight(b, scale), n), build_weight(b, base));
    value_id in = share(b, graph_slice(g, logits, 1, all, 0, n), n);
    value_id out = graph_act(g, graph_slice(g, logits, 1, all, n, n), ACT_SIGMOID);
    value_id each = graph_sinkhorn(g, graph_slice(g, logits, 1, all, 2 * n, n * n), n,
                                   build_whole(b, "hc_rounds"), (float)build_number(b, "hc_eps"));
    return (struct sub_layer){graph_mix(g, x, in, b->hp->width),
                              graph_concat(g, each, n * n, graph_scale(g, out, 2), n, 1)};
}

static value_id leave(struct build *b, value_id x, value_id y, const struct sub_layer *s) {
    uint32_t width = b->hp->width;
    value_id all = graph_concat(b->g, x, build_whole(b, "streams") * width, y, width, 1);
    return graph_mix(b->g, all, s->mix, width);
}

static value_id layer(struct build *b, value_id x, const struct rope *back) {
    struct sub_layer s = enter(b, x, "hc_attn_fn.weight", "hc_attn_scale.weight",
                               "hc_attn_base.weight");
    x = leave(b, x, attend(b, block_norm_named(b, s.input, "attn_norm"), back), &s);
    s = enter(b, x, "hc_ffn_fn.weight", "hc_ffn_scale.weight", "hc_ffn_base.weight");
    return leave(b, x, moe_mlp(b, block_norm_named(b, s.input, "ffn_norm")), &s);
}

/* The same angles, negative. */
static struct rope turned_back(struct build *b, const struct rope *rope) {
    struct rope back = *rope;
    float *freq = arena_array(b->arena, rope->half, sizeof *freq);
    if (!freq) b->g->failed = true;
    for (uint32_t i = 0; freq && i < rope->half; i++) freq[i] = -rope->freq[i];
    back.freq = freq;
    return back;
}

static value_id body(struct build *b, value_id x) {
    const struct hparams *hp = b->hp;
    uint32_t n = build_whole(b, "streams");
    struct rope window = turned_back(b, &hp->rope), blocks = window;
    for (uint32_t i = 0; i < hp->layers; i++)
        if (hp->every[i] && blocks.freq == window.freq)
            blocks = turned_back(b, hp->layer_rope[i]);
    x = streams_open(b, x, n);
    for (b->layer = 0; b->layer < hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = layer(b, x, hp->every[b->layer] ? &blocks : &window);
    }
    value_id logits = streams_logits(b, x, build_global(b, "output_hc_fn.weight"),
                                     spread(b, build_global(b, "output_hc_scale.weight"), n),
                                     build_global(b, "output_hc_base.weight"));
    return graph_mix(b->g, x, share(b, logits, n), hp->width);
}

const struct recipe model_deepseek_v4 = {
    .family = "deepseek_v4",
    .gguf = "deepseek4",
    .model_type = "deepseek_v4",
    .hf_class = "DeepseekV4ForCausalLM",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(tensors),
    .derive = derive,
    .body = body,
};
