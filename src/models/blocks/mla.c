/* SPDX-License-Identifier: Apache-2.0
 * mla.c: see mla.h. */
#include "models/blocks/mla.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "models/blocks/rope.h"

static const float latent_eps = 1e-6f; /* whatever the file says of other norms */

const struct key mla_keys[] = {
    WHOLE("kv_lora", "{arch}.attention.kv_lora_rank", "kv_lora_rank", REQUIRED, 0, 1, 1 << 16),
    WHOLE("q_lora", "{arch}.attention.q_lora_rank", "q_lora_rank", OPTIONAL, 0, 0, 1 << 16),
    WHOLE("nope", NULL, "qk_nope_head_dim", OPTIONAL, 0, 0, 4096),
    WHOLE("qk", "{arch}.attention.key_length_mla", NULL, OPTIONAL, 0, 0, 4096),
    WHOLE("rope", "{arch}.rope.dimension_count", "qk_rope_head_dim", REQUIRED, 0, 2, 4096),
    WHOLE("v_head", "{arch}.attention.value_length_mla", "v_head_dim", OPTIONAL, 0, 0, 4096),
    WHOLE("interleave", NULL, "rope_interleave", OPTIONAL, 1, 0, 1),
    REAL("temperature", "{arch}.attention.temperature_scale",
         "rope_parameters.llama_4_scaling_beta|rope_scaling.llama_4_scaling_beta", OPTIONAL, 0, 0,
         0),
    REAL("temperature_period",
         "{arch}.attention.temperature_length|{arch}.rope.scaling.original_context_length",
         "rope_parameters.original_max_position_embeddings|"
         "rope_scaling.original_max_position_embeddings|max_position_embeddings",
         OPTIONAL, 1, 1, 0),
    REAL("log_multiplier", "{arch}.rope.scaling.yarn_log_multiplier", NULL, OPTIONAL, 0, 0, 0),
    {0},
};

const struct key mla_index_keys[] = {
    WHOLE("index_heads", "{arch}.attention.indexer.head_count", "index_n_heads", REQUIRED, 0, 1,
          1024),
    WHOLE("index_dim", "{arch}.attention.indexer.key_length", "index_head_dim", REQUIRED, 0, 2,
          4096),
    WHOLE("index_used", "{arch}.attention.indexer.top_k", "index_topk", REQUIRED, 0, 1, 1 << 20),
    {0},
};

const struct tensor mla_tensors[] = {MLA_TENSORS("attn", "self_attn", "o_proj"), {0}};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The parts of a head; the KV head of the cache. */
static ob_status read_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t rope = build_whole(b, "rope"), latent = build_whole(b, "kv_lora");
    uint32_t nope = build_whole(b, "nope"), qk = build_whole(b, "qk");
    uint32_t v_head = build_whole(b, "v_head");
    if (nope == 0 && qk == 0) qk = hp->k_dim; /* GGUF files of before there was a key of its own */
    if (nope == 0 && qk > rope) nope = qk - rope;
    if (nope == 0)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.attention.key_length_mla",
                            "qk_nope_head_dim", error,
                            "a head of which nothing stays unrotated (%u rotated)", rope);
    if (v_head == 0) v_head = hp->v_dim ? hp->v_dim : hp->width / hp->heads[0];
    hp->k_dim = latent + rope;
    hp->v_dim = latent;
    hp->rope_dim = rope;
    for (uint32_t i = 0; i < hp->layers; i++) hp->kv_heads[i] = 1;
    ob_status s = build_set(b, "nope", nope, error);
    if (s == OB_OK) s = build_set(b, "qk", nope + rope, error);
    if (s == OB_OK) s = build_set(b, "v_head", v_head, error);
    if (s == OB_OK) s = build_set(b, "q_plain", build_whole(b, "q_lora") == 0, error);
    return s;
}

/* Yarn's correction of the scores' sizes: a factor of the scores' scale. In GGUF the rope has none
 * of its own. */
static ob_status scale_scores(struct build *b, ob_error *error) {
    float all = 0, factor = 1;
    struct str type = STR_LIT("default");
    build_str(b, "{arch}.rope.scaling.type",
              "rope_parameters.rope_type|rope_scaling.rope_type|rope_scaling.type", &type);
    build_f32(b, "{arch}.rope.scaling.factor", "rope_parameters.factor|rope_scaling.factor",
              &factor);
    build_f32(b, "{arch}.rope.scaling.yarn_log_multiplier",
              "rope_parameters.mscale_all_dim|rope_scaling.mscale_all_dim", &all);
    b->hp->attention_scale = 1 / sqrtf((float)build_number(b, "qk"));
    if (all == 0 || factor <= 1 || str_is(type, "default")) return OB_OK;
    bool gguf = source_kind(b->meta) == SOURCE_GGUF;
    if (gguf) b->hp->rope.magnitude = 1;
    double times = (gguf ? 1 : 0.1) * (double)all, scale = times * log((double)factor) + 1;
    b->hp->attention_scale = (float)(scale * scale) / sqrtf((float)build_number(b, "qk"));
    return build_set(b, "log_multiplier", times, error);
}

ob_status mla_derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = read_sizes(b, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s != OB_OK) return s;
    uint32_t rope = build_whole(b, "rope");
    s = rope_read(b,
                  &(struct rope_source){.hf = "rope_parameters",
                                        .base_key_hf = "rope_theta",
                                        .base_key_gguf = "{arch}.rope.freq_base",
                                        .base = 10000,
                                        .scaled = true,
                                        .head_dim = rope,
                                        .dim = rope},
                  &hp->rope, error);
    return s == OB_OK ? scale_scores(b, error) : s;
}

bool mla_has_indexer(struct build *b, uint32_t layer) {
    static const char gguf[] = "{arch}.attention.indexer.types";
    struct str type;
    uint64_t number;
    bool has;
    char name[64];
    if (source_kind(b->meta) != SOURCE_GGUF)
        return !build_str_at(b, NULL, "indexer_types", layer, &type) || !str_is(type, "shared");
    if (build_bool_at(b, gguf, NULL, layer, &has)) return has;
    if (build_u64_at(b, gguf, NULL, layer, &number)) return number != 0;
    snprintf(name, sizeof name, "blk.%u.indexer.attn_k.weight", layer); /* files without the key */
    return source_tensor_find(b->source, str_of(name)) != NULL;
}

ob_status mla_indexers(struct build *b, bool (*has)(struct build *b, uint32_t layer),
                       ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t rope = build_whole(b, "rope"), dim = build_whole(b, "index_dim");
    if (build_whole(b, "q_lora") == 0)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "q_lora_rank", error,
                            "is missing, an indexer needs the queries' latent");
    if (rope > dim)
        return build_refuse(b, OB_ERR_FORMAT, NULL, "index_head_dim", error,
                            "%u, fewer than the %u that turn", dim, rope);
    hp->chooses = arena_array(b->arena, hp->layers, sizeof *hp->chooses);
    if (!hp->chooses) return error_memory(error, "hyperparameters", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) hp->chooses[i] = has(b, i);
    return OB_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

struct names {
    char text[32];
};
static struct names name(const struct mla_args *args, const char *what) {
    struct names n;
    snprintf(n.text, sizeof n.text, "%s%s", args->block ? args->block : "attn", what);
    return n;
}
#define NAME(what) name(args, what).text

static value_id norm(struct build *b, value_id x, struct weight *w, const struct mla_args *args) {
    return graph_norm(b->g, x, w, NULL, NORM_RMS, args->eps > 0 ? args->eps : latent_eps, w->cols);
}

static value_id scaled(struct build *b, value_id x, float scale) {
    return scale == 0 ? x : graph_scale(b->g, x, scale);
}

static value_id rotate(struct build *b, value_id x, uint32_t heads, const struct mla_args *args) {
    if (b->hp->no_rope[b->layer]) return x;
    value_id table = block_rope_table(b, b->hp->window[b->layer] > 0);
    return graph_rope(b->g, x, table, heads, build_whole(b, "rope"),
                      !args->halves && build_whole(b, "interleave"));
}

/* A token's projections: of queries the latent, too, and what W_q_b took. */
struct parts {
    value_id q, kv, latent, input;
};

static struct parts project(struct build *b, value_id x, const struct mla_args *args) {
    bool plain = build_whole(b, "q_lora") == 0;
    struct weight *w[2] = {build_weight(b, plain ? NAME("_q.weight") : NAME("_q_a.weight")),
                           build_weight(b, NAME("_kv_a_mqa.weight"))};
    struct weight *bias[2] = {plain ? NULL : build_weight(b, NAME("_q_a.bias")),
                              build_weight(b, NAME("_kv_a_mqa.bias"))};
    value_id out[2];
    graph_linear(b->g, x, 2, w, bias, out);
    struct parts p = {.q = out[0], .kv = out[1], .latent = NO_VALUE, .input = x};
    if (plain) return p;
    p.latent = scaled(b, norm(b, out[0], build_weight(b, NAME("_q_a_norm.weight")), args),
                      args->q_scale);
    uint32_t rank = w[0]->rows;
    p.input = args->raw_beside ? graph_concat(b->g, p.latent, rank, out[0], rank, 1) : p.latent;
    p.q = block_linear(b, p.input, NAME("_q_b"));
    return p;
}

static value_id rotate_index(struct build *b, value_id x, uint32_t heads,
                             const struct mla_args *args) {
    struct graph *g = b->g;
    value_id table = block_rope_table(b, b->hp->window[b->layer] > 0);
    uint32_t rope = build_whole(b, "rope"), dim = build_whole(b, "index_dim"), still = dim - rope;
    if (!args->index_rope_last || still == 0)
        return graph_rope(g, x, table, heads, dim, args->index_interleaved);
    value_id turned = graph_rope(g, graph_slice(g, x, heads, dim, still, rope), table, heads, rope,
                                 args->index_interleaved);
    return graph_concat(g, graph_slice(g, x, heads, dim, 0, still), still, turned, rope, heads);
}

/* The positions that a small attention of ReLUs in place of a softmax finds the most of. */
static value_id choose(struct build *b, value_id x, value_id latent, const struct mla_args *args) {
    struct graph *g = b->g;
    uint32_t heads = build_whole(b, "index_heads"), dim = build_whole(b, "index_dim");
    value_id q = block_linear(b, latent, "indexer.attn_q_b");
    value_id k = graph_norm(g, block_linear(b, x, "indexer.attn_k"),
                            build_weight(b, "indexer.k_norm.weight"),
                            build_weight(b, "indexer.k_norm.bias"), NORM_LAYER,
                            args->index_eps > 0 ? args->index_eps : latent_eps, dim);
    q = rotate_index(b, q, heads, args);
    k = rotate_index(b, k, 1, args);
    value_id weights = graph_scale(g, block_linear(b, x, "indexer.proj"),
                                   1 / sqrtf((float)heads * (float)dim));
    return graph_index_select(g, q, weights, k, build_whole(b, "index_used"), 0);
}

/* Into the latent's space, the rotary part behind. */
static value_id query(struct build *b, value_id q, const struct mla_args *args) {
    struct graph *g = b->g;
    uint32_t heads = b->hp->heads[b->layer], nope = build_whole(b, "nope");
    uint32_t rope = build_whole(b, "rope"), latent = build_whole(b, "kv_lora");
    float temperature = (float)build_number(b, "temperature");
    value_id turned = graph_slice(g, q, heads, nope + rope, nope, rope);
    value_id still = graph_slice(g, q, heads, nope + rope, 0, nope);
    still = graph_linear_heads(g, still, build_weight(b, NAME("_k_b.weight")));
    q = graph_concat(g, still, latent, rotate(b, turned, heads, args), rope, heads);
    if (temperature == 0) return q;
    return graph_scale_position(g, q, temperature, 0,
                                (float)build_number(b, "temperature_period"));
}

value_id mla_attention(struct build *b, value_id x, const struct mla_args *args) {
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t rope = build_whole(b, "rope"), latent = build_whole(b, "kv_lora");
    struct parts p = project(b, x, args);
    value_id q = query(b, p.q, args), kv = p.kv;
    if (args->has_indexer) *args->selection = choose(b, x, p.latent, args);
    value_id turned = graph_slice(g, kv, 1, latent + rope, latent, rope);
    value_id v = graph_slice(g, kv, 1, latent + rope, 0, latent);
    v = scaled(b, norm(b, v, build_weight(b, NAME("_kv_a_norm.weight")), args), args->latent_scale);
    if (build_weight(b, NAME("_k_rope_norm.weight")))
        turned = norm(b, turned, build_weight(b, NAME("_k_rope_norm.weight")), args);
    value_id k = graph_concat(g, v, latent, rotate(b, turned, 1, args), rope, 1);
    value_id mixed = graph_attention(g, q, k, v,
                                     &(struct attention_args){.heads = hp->heads[b->layer],
                                                              .kv_heads = 1,
                                                              .k_dim = latent + rope,
                                                              .v_dim = latent,
                                                              .window = hp->window[b->layer],
                                                              .scale = hp->attention_scale,
                                                              .sinks = build_weight(
                                                                  b, NAME("_sinks.weight")),
                                                              .selects = args->selection != NULL,
                                                              .selection = args->selection
                                                                               ? *args->selection
                                                                               : NO_VALUE});
    mixed = graph_linear_heads(g, mixed, build_weight(b, NAME("_v_b.weight")));
    if (build_weight(b, NAME("_gate.weight")))
        mixed = graph_glu(g, block_linear(b, args->raw_beside ? p.input : x, NAME("_gate")), mixed,
                          ACT_SIGMOID);
    return block_linear(b, mixed, NAME("_output"));
}

value_id mla_mixer(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    return mla_attention(b, x, &(struct mla_args){0});
}

value_id mla_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mla_mixer});
}
