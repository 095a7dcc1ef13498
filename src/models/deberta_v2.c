/* SPDX-License-Identifier: Apache-2.0
 *
 * deberta_v2.c: DebertaV2Model (DeBERTa v2 and v3, arXiv 2006.03654, 2111.09543) and its
 * classifier: BERT whose scores get two terms by the tokens' distance d, each with vectors of
 * relative positions that pass the layer's projections of keys and of queries:
 *     q . k + q . K_pos[place(d)] + k . Q_pos[place(d)], times (head size * terms)^-1/2
 * Far distances share places, by their logarithm. K_pos and Q_pos are made at load. */
#include <math.h>

#include "base/error.h"
#include "models/bert.h"

#define LAYER "{m}encoder.layer.{i}."
#define SELF LAYER "attention.self."

static const struct key keys[] = {
    WHOLE("embd", NULL, "embedding_size", OPTIONAL, 0, 0, 1 << 20),
    REAL("buckets", NULL, "position_buckets", OPTIONAL, -1, -1, 1 << 14), /* below 1: none */
    WHOLE("shared", NULL, "share_att_key", OPTIONAL, 0, 0, 1),
    WHOLE("learned", NULL, "position_biased_input", OPTIONAL, 1, 0, 1),
    WHOLE("types", NULL, "type_vocab_size", OPTIONAL, 0, 0, 65536),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "learned*context",
           "width", REQUIRED),
    MATRIX("token_types.weight", "{m}embeddings.token_type_embeddings.weight", "types", "width",
           REQUIRED),
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "width"),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    MATRIX("attn_rel.weight", "{m}encoder.rel_embeddings.weight", "2*span", "width", REQUIRED,
           .from_hf = "f32"),
    VECTOR("attn_rel_norm.weight", "{m}encoder.LayerNorm.weight", "width", OPTIONAL,
           .needed = "rel_norm"),
    VECTOR("attn_rel_norm.bias", "{m}encoder.LayerNorm.bias", "width", OPTIONAL,
           .needed = "rel_norm"),
    ENCODER_LAYER(SELF "query_proj", SELF "key_proj", SELF "value_proj",
                  LAYER "attention.output.dense", LAYER "intermediate.dense", LAYER "output.dense"),
    ENCODER_DENSE("blk.{i}.attn_pos_k", SELF "pos_key_proj", "own_k*heads*k_dim", "width",
                  REQUIRED),
    ENCODER_DENSE("blk.{i}.attn_pos_q", SELF "pos_query_proj", "own_q*heads*k_dim", "width",
                  REQUIRED),
    ENCODER_NORMS_AFTER(LAYER "attention.output.LayerNorm", LAYER "output.LayerNorm"),
    ENCODER_DENSE("cls", "pooler.dense", "width", "width", OPTIONAL),
    ENCODER_SCORES("classifier"),
    KNOWN("mlm", "cls.*", "words in gaps are not guessed"),
    KNOWN("mlm2", "lm_predictions.*", "words in gaps are not guessed"),
    KNOWN("rtd", "mask_predictions.*", "replaced words are not found"),
    {0},
};

/* ---- sizes ---- */

static ob_status refuse(struct build *b, const char *key, ob_error *error, const char *what) {
    return build_refuse(b, OB_ERR_UNSUPPORTED, "", key, error, "%s is not supported", what);
}

/* A list, or "p2c|c2p". */
static bool has_term(struct build *b, const char *term) {
    struct str is;
    for (uint64_t i = 0; i < build_count(b, NULL, "pos_att_type"); i++)
        if (build_str_at(b, NULL, "pos_att_type", i, &is) && str_contains(is, term)) return true;
    return false;
}

/* Those that there are; "" is none. */
static ob_status check_terms(struct build *b, ob_error *error) {
    static const char key[] = "pos_att_type";
    for (uint64_t i = 0; i < build_count(b, NULL, key); i++) {
        struct str is;
        bool known = true;
        if (!build_str_at(b, NULL, key, i, &is)) return OB_OK; /* refused later, as no string */
        for (size_t at = 0; known && at < is.n; at += 4)
            known = is.n - at >= 3 && (memcmp(is.p + at, "c2p", 3) == 0 ||
                                       memcmp(is.p + at, "p2c", 3) == 0) &&
                    (at + 3 == is.n || is.p[at + 3] == '|');
        if (!known) return refuse(b, key, error, "a term but c2p and p2c");
    }
    return OB_OK;
}

static ob_status read_terms(struct build *b, ob_error *error) {
    struct str norm = STR_LIT("none");
    bool relative = false, to_key = has_term(b, "c2p"), to_query = has_term(b, "p2c");
    double own = build_whole(b, "shared") ? 0 : 1;
    uint32_t most = 0, conv = 0;
    ob_status s = check_terms(b, error);
    if (s == OB_OK) s = build_flag(b, NULL, "relative_attention", &relative, error);
    if (s == OB_OK && (!relative || (!to_key && !to_query)))
        s = refuse(b, relative ? "pos_att_type" : "relative_attention", error,
                   "attention without relative positions");
    build_str(b, NULL, "norm_rel_ebd", &norm);
    if (s == OB_OK && !str_is(norm, "none") && !str_is(norm, "layer_norm"))
        s = refuse(b, "norm_rel_ebd", error, "another norm than layer_norm");
    if (s == OB_OK && build_u32(b, NULL, "conv_kernel_size", &conv) && conv > 0)
        s = refuse(b, "conv_kernel_size", error, "a convolution");
    double embd = build_number(b, "embd");
    if (s == OB_OK && embd > 0 && embd != b->hp->width)
        s = refuse(b, "embedding_size", error, "an embedding of another width");
    float given = -1; /* as many as there are positions */
    build_f32(b, NULL, "max_relative_positions", &given);
    most = given < 1 ? b->hp->context : given > 1 << 16 ? UINT32_MAX : (uint32_t)given;
    uint32_t buckets = build_number(b, "buckets") < 1 ? 0 : build_whole(b, "buckets");
    uint32_t span = buckets ? buckets : most;
    if (s == OB_OK && (buckets == 1 || most < 2 || most > 1 << 16))
        s = refuse(b, "max_relative_positions", error, "so few or many relative positions");
    if (s == OB_OK) s = build_set(b, "buckets", buckets, error);
    if (s == OB_OK) s = build_set(b, "span", span, error);
    if (s == OB_OK) s = build_set(b, "farthest", most, error);
    if (s == OB_OK) s = build_set(b, "to_key", to_key, error);
    if (s == OB_OK) s = build_set(b, "to_query", to_query, error);
    if (s == OB_OK) s = build_set(b, "rel_norm", str_is(norm, "layer_norm"), error);
    if (s == OB_OK) s = build_set(b, "own_k", to_key ? own : 0, error);
    return s == OB_OK ? build_set(b, "own_q", to_query ? own : 0, error) : s;
}

static ob_status read_pooler(struct build *b, ob_error *error) {
    struct str act = STR_LIT("gelu");
    build_str(b, NULL, "pooler_hidden_act", &act);
    if (build_act_named(act, &b->hp->head_act)) return OB_OK;
    return build_refuse(b, OB_ERR_UNSUPPORTED, "", "pooler_hidden_act", error,
                        "activation \"%.*s\" is not known", STR_ARG(act));
}

/* Which vector is of distance d = pos_q - pos_k. */
static uint32_t place_of(int32_t d, uint32_t buckets, uint32_t farthest, uint32_t span) {
    int32_t middle = (int32_t)buckets / 2, size = d < 0 ? -d : d;
    if (buckets > 0 && size > middle) {
        float part = logf((float)size / (float)middle) /
                     logf((float)(farthest - 1) / (float)middle);
        size = (int32_t)ceilf(part * (float)(middle - 1)) + middle;
    }
    int32_t place = (d < 0 ? -size : size) + (int32_t)span, last = 2 * (int32_t)span - 1;
    return (uint32_t)(place < 0 ? 0 : place > last ? last : place);
}

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    ob_status s = read_terms(b, error);
    if (s == OB_OK) s = read_pooler(b, error);
    if (s == OB_OK) s = encoder_sizes(b, "cls.output.weight", "classifier.weight", error);
    if (s != OB_OK) return s;
    if (hp->context > 1 << 16)
        return refuse(b, "max_position_embeddings", error, "more than 65536 positions");
    double terms = 1 + build_number(b, "to_key") + build_number(b, "to_query");
    hp->attention_scale = (float)(1 / sqrt((double)hp->k_dim * terms));
    uint32_t wide = 2 * hp->context + 1, *places = arena_array(b->arena, wide, sizeof *places);
    if (!places) return error_memory(error, "places", wide);
    for (uint32_t i = 0; i < wide; i++)
        places[i] = place_of((int32_t)i - (int32_t)hp->context, build_whole(b, "buckets"),
                             build_whole(b, "farthest"), build_whole(b, "span"));
    hp->places = places;
    hp->reach = hp->context;
    return OB_OK;
}

/* ---- vectors of relative positions, through a layer's projection ---- */

/* Normed, and with a column for each position. */
static float *turned_positions(struct build *b) {
    const struct weight *rel = build_global(b, "attn_rel.weight"),
                        *norm = build_global(b, "attn_rel_norm.weight"),
                        *bias = build_global(b, "attn_rel_norm.bias");
    float *out = arena_array(b->arena, (size_t)rel->rows * rel->cols, sizeof *out);
    for (uint32_t r = 0; out && rel->data && r < rel->rows; r++) {
        const float *x = (const float *)((const char *)rel->data + r * rel->row_bytes);
        double mean = 0, square = 0, scale = 1;
        bool normed = build_whole(b, "rel_norm") && norm && bias;
        for (uint32_t i = 0; normed && i < rel->cols; i++) mean += (double)x[i] / rel->cols;
        for (uint32_t i = 0; normed && i < rel->cols; i++)
            square += ((double)x[i] - mean) * ((double)x[i] - mean) / rel->cols;
        if (normed) scale = 1 / sqrt(square + (double)b->hp->eps);
        for (uint32_t i = 0; i < rel->cols; i++) {
            double y = ((double)x[i] - mean) * scale;
            if (normed)
                y = y * (double)((const float *)norm->data)[i] +
                    (double)((const float *)bias->data)[i];
            out[(size_t)i * rel->rows + r] = (float)y;
        }
    }
    return out;
}

/* [heads][2 * span][k_dim], times the scale of scores. */
static struct weight *project(struct build *b, const float *positions, const char *matrix,
                              const char *vector) {
    const struct weight *w = build_weight(b, matrix), *bias = build_weight(b, vector);
    uint32_t rows = 2 * build_whole(b, "span"), dim = b->hp->k_dim, heads = b->hp->heads[0];
    size_t each = (size_t)rows * dim;
    struct weight *out = arena_alloc(b->arena, sizeof *out);
    float *data = arena_array(b->arena, each * heads, sizeof *data);
    float *row = arena_array(b->arena, w->cols, sizeof *row);
    float *sum = arena_array(b->arena, rows, sizeof *sum);
    const void **expert = arena_array(b->arena, heads, sizeof *expert);
    if (!out || !data || !row || !sum || !expert) return NULL;
    for (uint32_t o = 0; w->data && o < w->rows; o++) {
        w->quant->decode((const char *)w->data + o * w->row_bytes, row, w->cols / w->quant->block);
        for (uint32_t r = 0; r < rows; r++) sum[r] = bias ? ((const float *)bias->data)[o] : 0;
        for (uint32_t i = 0; i < w->cols; i++)
            for (uint32_t r = 0; r < rows; r++) sum[r] += row[i] * positions[(size_t)i * rows + r];
        for (uint32_t r = 0; r < rows; r++)
            data[o / dim * each + (size_t)r * dim + o % dim] = sum[r] * b->hp->attention_scale;
    }
    for (uint32_t h = 0; h < heads; h++) expert[h] = data + h * each;
    b->model->copied++;
    b->model->copied_bytes += each * heads * sizeof *data;
    *out = (struct weight){.name = matrix,
                           .quant = quant_list[QUANT_f32],
                           .rows = rows,
                           .cols = dim,
                           .experts = heads,
                           .heads = true,
                           .row_bytes = dim * sizeof *data,
                           .expert = expert};
    return out;
}

/* The products of x's heads with these; NO_VALUE when out of memory. */
static value_id by_position(struct build *b, value_id x, bool keys_side) {
    bool shared = build_whole(b, "shared");
    const char *matrix = keys_side ? shared ? "attn_k.weight" : "attn_pos_k.weight"
                         : shared  ? "attn_q.weight"
                                   : "attn_pos_q.weight";
    const char *vector = keys_side ? shared ? "attn_k.bias" : "attn_pos_k.bias"
                         : shared  ? "attn_q.bias"
                                   : "attn_pos_q.bias";
    if (!b->hp->positions) b->hp->positions = turned_positions(b);
    struct weight *w = b->hp->positions ? project(b, b->hp->positions, matrix, vector) : NULL;
    if (w) return graph_linear_heads(b->g, x, w);
    b->g->failed = true;
    return x;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    (void)args;
    const struct hparams *hp = b->hp;
    static const char *const names[3][2] = {{"attn_q.weight", "attn_q.bias"},
                                            {"attn_k.weight", "attn_k.bias"},
                                            {"attn_v.weight", "attn_v.bias"}};
    struct weight *w[3], *bias[3];
    value_id out[3];
    for (int i = 0; i < 3; i++) {
        w[i] = build_weight(b, names[i][0]);
        bias[i] = build_weight(b, names[i][1]);
    }
    graph_linear(b->g, x, 3, w, bias, out);
    bool to_key = build_whole(b, "to_key"), to_query = build_whole(b, "to_query");
    value_id of_query = to_key ? by_position(b, out[0], true) : NO_VALUE;
    value_id of_key = to_query ? by_position(b, out[1], false) : NO_VALUE;
    value_id mixed = graph_attention(b->g, out[0], out[1], out[2],
                                     &(struct attention_args){.heads = hp->heads[0],
                                                              .kv_heads = hp->heads[0],
                                                              .k_dim = hp->k_dim,
                                                              .v_dim = hp->v_dim,
                                                              .scale = hp->attention_scale,
                                                              .bidirectional = true,
                                                              .has_by_distance = to_key,
                                                              .by_distance = of_query,
                                                              .has_by_key = to_query,
                                                              .by_key = of_key,
                                                              .places = hp->places,
                                                              .reach = hp->reach});
    return block_linear(b, mixed, "attn_output");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer});
}

static value_id head(struct build *b, value_id x) {
    return encoder_head(b, x, POOL_FIRST, b->hp->head_act);
}

const struct recipe model_deberta_v2 = {
    .family = "deberta-v2",
    .model_type = "deberta-v2",
    .hf_class = "DebertaV2Model",
    .roots = "deberta.|",
    KEYS(decoder_keys, encoder_keys, keys),
    TENSORS(tensors),
    .act = "gelu",
    .derive = derive,
    .layer = layer,
    .head = head,
};
