/* SPDX-License-Identifier: Apache-2.0
 * pooling.c: see pooling.h. */
#include "models/blocks/pooling.h"

#include <stdio.h>

#include "base/error.h"
#include "models/blocks/encoder.h"

#define DENSE(n)                                                                         \
    MATRIX("dense_" n ".weight", "dense_" n ".weight", "dense_" n "_out", "dense_" n "_in", \
           REQUIRED),                                                                    \
    VECTOR("dense_" n ".bias", "dense_" n ".bias", "dense_" n "_out", OPTIONAL)

const struct tensor pooling_tensors[] = {
    DENSE("2"),
    DENSE("3"),
    ENCODER_DENSE("cls.output", "score", "scores", "width", OPTIONAL),
    {0},
};

enum { KEY_BYTES = 96 };

/* "dense_2_in", "{arch}.dense_3_feat_out", "1bit.dense_2_act" */
static const char *key_of(const char *format, uint32_t dense, char out[KEY_BYTES]) {
    snprintf(out, KEY_BYTES, format, dense + 2);
    return out;
}

/* ---- reading --------------------------------------------------------------------------------- */

static ob_status refuse(const struct build *b, const char *key, ob_error *error,
                        const char *what) {
    ob_status s = error_set(error, OB_ERR_UNSUPPORTED, "%s", what);
    error_at(error, source_path(b->source), key, OB_NO_OFFSET);
    return s;
}

/* Of a GGUF; *said: it has a key. */
static ob_status read_gguf(struct build *b, struct hf_modules *m, bool *said, ob_error *error) {
    static const char key[] = "{arch}.pooling_type";
    const struct source *source = b->source;
    uint64_t type = POOLING_NONE, n;
    struct str text;
    char name[KEY_BYTES];
    m->unit = true; /* llama.cpp's vectors all have length 1 */
    source_bool(source, "1bit.pooling_unit", 0, &m->unit);
    *said = source_u64(source, key, 0, &type);
    if (type > POOLING_RANK) return refuse(b, key, error, "is no way of pooling that is known");
    if (type == POOLING_MEAN) hf_poolings_of(STR_LIT("mean"), m);
    if (type == POOLING_FIRST) hf_poolings_of(STR_LIT("cls"), m);
    if (type == POOLING_LAST) hf_poolings_of(STR_LIT("lasttoken"), m);
    b->hp->ranks = type == POOLING_RANK;
    if (source_str(source, "1bit.pooling", 0, &text) && !hf_poolings_of(text, m))
        return refuse(b, "1bit.pooling", error, "is no way of pooling that is known");
    for (uint32_t i = 0; m->pools && i < HF_DENSE_MAX; i++) {
        struct hf_dense *d = &m->dense[i];
        *d = (struct hf_dense){.act = ACT_IDENTITY};
        if (source_u64(source, key_of("{arch}.dense_%u_feat_in", i, name), 0, &n) &&
            n <= 1 << 20)
            d->in = (uint32_t)n;
        if (source_u64(source, key_of("{arch}.dense_%u_feat_out", i, name), 0, &n) &&
            n <= 1 << 20)
            d->out = (uint32_t)n;
        if (source_str(source, key_of("1bit.dense_%u_act", i, name), 0, &text) &&
            !hf_act_of(text, &d->act))
            return refuse(b, name, error, "is no activation that is known");
        if (d->in && d->out && i == m->denses) m->denses++;
    }
    return OB_OK;
}

/* The last token's scores, of a decoder that was made a classifier; 0: it is none. */
static ob_status read_scores(struct build *b, ob_error *error) {
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    struct str name = gguf ? STR_LIT("cls.output.weight") : STR_LIT("score.weight");
    const struct source_tensor *t = source_tensor_find(b->source, name);
    bool judges = str_ends(source_class(b->meta), "ForSequenceClassification");
    bool scores = judges && !b->recipe->head && t && t->dim[1] <= 1 << 20;
    b->hp->scores = scores;
    return build_set(b, "scores", scores ? (double)t->dim[1] : 0, error);
}

ob_status pooling_read(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    struct hf_modules *m = &hp->modules;
    ob_status s;
    if (source_kind(b->source) == SOURCE_GGUF) {
        s = read_gguf(b, m, &hp->pooling_said, error);
    } else {
        s = hf_modules_read(b->source, m, error);
        hp->pooling_said = m->pools > 0;
    }
    for (uint32_t i = 0; s == OB_OK && i < HF_DENSE_MAX; i++) {
        const struct hf_dense none = {0}, *d = i < m->denses ? &m->dense[i] : &none;
        s = build_set(b, i ? "dense_3_in" : "dense_2_in", d->in, error);
        if (s == OB_OK) s = build_set(b, i ? "dense_3_out" : "dense_2_out", d->out, error);
    }
    hp->embeds = m->pools > 0;
    return s == OB_OK ? read_scores(b, error) : s;
}

/* A decoder whose file says that tokens see later ones. */
static ob_status refuse_both_sides(struct build *b, ob_error *error) {
    bool causal = true, both = false;
    ob_status s = build_flag(b, "{arch}.attention.causal", "is_causal", &causal, error);
    if (s == OB_OK && build_bool(b, NULL, "use_bidirectional_attention", &both) && both)
        causal = false;
    if (s != OB_OK || causal) return s;
    return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.attention.causal",
                        both ? "use_bidirectional_attention" : "is_causal", error,
                        "attention to later tokens is not supported in this family");
}

/* A dense layer of a directory has a bias if its config.json says so. */
static ob_status check_biases(struct build *b, ob_error *error) {
    static const char *const name[HF_DENSE_MAX] = {"dense_2.bias", "dense_3.bias"};
    const struct hf_modules *m = &b->hp->modules;
    for (uint32_t i = 0; source_kind(b->source) == SOURCE_HF && i < m->denses; i++) {
        bool there = source_tensor_find(b->source, str_of(name[i])) != NULL;
        if (there == m->dense[i].bias) continue;
        error_set(error, OB_ERR_FORMAT, there ? "is there, and \"bias\" of its config.json is false"
                                              : "is missing");
        char file[HF_FOLDER + sizeof "/linear.bias"];
        snprintf(file, sizeof file, "%s/linear.bias", m->dense[i].folder);
        error_at(error, source_path(b->source), file, OB_NO_OFFSET);
        return OB_ERR_FORMAT;
    }
    return OB_OK;
}

ob_status pooling_settle(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    struct hf_modules *m = &hp->modules;
    if (hp->bidirectional && !hp->pooling_said) hf_poolings_of(STR_LIT("mean"), m);
    hp->embeds = m->pools > 0;
    if (hp->ranks && !hp->bidirectional)
        return refuse(b, "pooling_type", error, "ranking by a decoder is not supported");
    if (m->pooled && m->pooled != hp->width) {
        char file[HF_FOLDER + sizeof "/config.json"];
        snprintf(file, sizeof file, "%s%sconfig.json", m->pooling, *m->pooling ? "/" : "");
        error_set(error, OB_ERR_FORMAT, "pools states of %u numbers, the model has %u", m->pooled,
                  hp->width);
        error_at(error, source_path(b->source), file, OB_NO_OFFSET);
        return OB_ERR_FORMAT;
    }
    ob_status bias = check_biases(b, error);
    if (bias != OB_OK) return bias;
    uint32_t cols = m->pools * hp->width;
    for (uint32_t i = 0; i < m->denses; i++) {
        const struct hf_dense *d = &m->dense[i];
        if (d->in != cols) {
            error_set(error, OB_ERR_FORMAT, "its dense layer %u reads %u numbers of %u", i + 1,
                      d->in, cols);
            error_at(error, source_path(b->source), "modules.json", OB_NO_OFFSET);
            return OB_ERR_FORMAT;
        }
        cols = d->out;
    }
    return hp->bidirectional ? OB_OK : refuse_both_sides(b, error);
}

/* ---- the graph ------------------------------------------------------------------------------- */

value_id pooling_vector(struct build *b, value_id x) {
    const struct hf_modules *m = &b->hp->modules;
    struct graph *g = b->g;
    value_id y = NO_VALUE;
    uint32_t cols = 0, width = b->hp->width;
    for (uint32_t i = 0; i < m->pools; i++, cols += width) {
        value_id one = graph_pool(g, x, m->pool[i]);
        y = i ? graph_concat(g, y, cols, one, width, 1) : one;
    }
    for (uint32_t i = 0; i < m->denses; i++) {
        y = graph_linear1(g, y, build_global(b, i ? "dense_3.weight" : "dense_2.weight"),
                          build_global(b, i ? "dense_3.bias" : "dense_2.bias"));
        if (m->dense[i].act != ACT_IDENTITY) y = graph_act(g, y, m->dense[i].act);
        cols = m->dense[i].out;
    }
    return m->unit ? graph_norm(g, y, NULL, NULL, NORM_L2, 1e-12f, cols) : y;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One of the ways that llama.cpp has a number for. */
static uint32_t type_of(const struct hparams *hp) {
    const struct hf_modules *m = &hp->modules;
    if (hp->ranks) return POOLING_RANK;
    if (m->pools != 1) return POOLING_NONE;
    return m->pool[0] == POOL_MEAN    ? POOLING_MEAN
           : m->pool[0] == POOL_FIRST ? POOLING_FIRST
           : m->pool[0] == POOL_LAST  ? POOLING_LAST
                                      : POOLING_NONE;
}

void pooling_put(const struct hparams *hp, const char *arch, struct gguf_writer *w) {
    const struct hf_modules *m = &hp->modules;
    char key[KEY_BYTES], text[HF_POOLINGS];
    uint32_t type = type_of(hp);
    if (!hp->embeds && !hp->bidirectional) return;
    snprintf(key, sizeof key, "%s.pooling_type", arch);
    gguf_put_whole(w, key, GGUF_U32, type);
    if (!hp->embeds) return;
    hf_poolings_text(m, text);
    if (type == POOLING_NONE) gguf_put_str(w, "1bit.pooling", str_of(text));
    gguf_put_whole(w, "1bit.pooling_unit", GGUF_BOOL, m->unit);
    for (uint32_t i = 0; i < m->denses; i++) {
        snprintf(key, sizeof key, "%s.dense_%u_feat_in", arch, i + 2);
        gguf_put_whole(w, key, GGUF_U32, m->dense[i].in);
        snprintf(key, sizeof key, "%s.dense_%u_feat_out", arch, i + 2);
        gguf_put_whole(w, key, GGUF_U32, m->dense[i].out);
        if (m->dense[i].act == ACT_IDENTITY) continue;
        gguf_put_str(w, key_of("1bit.dense_%u_act", i, key), str_of(hf_act_text(m->dense[i].act)));
    }
}
