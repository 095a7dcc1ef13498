/* SPDX-License-Identifier: Apache-2.0
 * model.c: see model.h. */
#include "models/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "models/load.h"

#define MODEL(name) extern const struct recipe model_##name;
#include "models/models.def"
#undef MODEL

const struct recipe *const recipe_list[] = {
#define MODEL(name) &model_##name,
#include "models/models.def"
#undef MODEL
};
const size_t recipe_count = sizeof recipe_list / sizeof recipe_list[0];

const char *model_family(const struct model *model) { return model->recipe->family; }

static bool matches(const struct recipe *r, enum source_kind kind, struct str arch) {
    if (kind == SOURCE_GGUF) return r->gguf && str_is(arch, r->gguf);
    return str_is(arch, r->model_type) || (r->also_type && str_is(arch, r->also_type));
}

ob_status model_find(const struct source *source, const struct recipe **out, ob_error *error) {
    struct str arch = source_architecture(source);
    for (size_t i = 0; i < recipe_count; i++)
        if (matches(recipe_list[i], source_kind(source), arch)) return *out = recipe_list[i], OB_OK;
    struct buf known = BUF_INIT;
    bool gguf = source_kind(source) == SOURCE_GGUF;
    for (size_t i = 0; i < recipe_count; i++)
        if (!gguf || recipe_list[i]->gguf)
            buf_printf(&known, "%s%s", known.n ? ", " : "",
                       gguf ? recipe_list[i]->gguf : recipe_list[i]->model_type);
    ob_status s =
        error_set(error, OB_ERR_UNSUPPORTED, "architecture \"%.*s\" has no recipe (known: %s)",
                  STR_ARG(arch), known.p ? known.p : "");
    buf_free(&known);
    error_at(error, source_path(source), NULL, OB_NO_OFFSET);
    return s;
}

/* The vocabulary's size is the embedding's: no key is needed for it. */
static ob_status read_vocab(struct build *b, ob_error *error) {
    const char *name =
        source_kind(b->source) == SOURCE_GGUF ? "token_embd.weight" : "model.embed_tokens.weight";
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    const char *what = !t ? "required tensor is missing"
                       : t->ndim != 2 || t->dim[1] > 1 << 24
                           ? "is no matrix of at most 16777216 rows"
                           : NULL;
    if (!what) {
        b->hp->vocab = (uint32_t)t->dim[1];
        return OB_OK;
    }
    ob_status s = error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, source_path(b->source), name, OB_NO_OFFSET);
    return s;
}

static ob_status build_graph(struct build *b, ob_error *error) {
    struct graph *g = b->g;
    struct weight *embed = build_global(b, "token_embd.weight"),
                  *out = build_global(b, "output.weight");
    bool tied = true;
    if (!out && source_bool(b->source, "tie_word_embeddings", 0, &tied) && !tied) {
        ob_status s =
            error_set(error, OB_ERR_FORMAT, "is missing and tie_word_embeddings is false");
        error_at(error, source_path(b->source), "lm_head.weight", OB_NO_OFFSET);
        return s;
    }
    graph_init(g, b->arena);
    value_id x = graph_embed(g, embed, b->hp->embed_scale);
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        g->layer = (int32_t)b->layer;
        x = b->recipe->layer(b, x);
    }
    g->layer = -1;
    x = graph_gather_rows(g, x);
    x = graph_norm(g, x, build_global(b, "output_norm.weight"), NULL, NORM_RMS, b->hp->eps,
                   b->hp->width);
    g->logits = graph_linear1(g, x, out ? out : embed, NULL);
    if (b->hp->logit_softcap > 0) g->logits = graph_softcap(g, g->logits, b->hp->logit_softcap);
    return g->failed ? error_memory(error, "the graph", 0) : OB_OK;
}

static void count_weights(struct build *b) {
    struct model *m = b->model;
    m->weight = b->found;
    m->weights = b->found_count;
    for (uint32_t i = 0; i < b->found_count; i++) {
        const struct weight *w = b->found[i];
        uint64_t one = (uint64_t)w->rows * w->cols;
        m->parameters += one * (w->experts ? w->experts : 1);
        m->active_parameters += one * (w->experts ? b->hp->expert_used : 1);
        m->weight_bytes += weight_bytes(w);
    }
}

ob_status model_open(const struct source *source, struct model **out, ob_error *error) {
    struct model *m = calloc(1, sizeof *m);
    if (!m) return error_memory(error, "a model", sizeof *m);
    m->source = source;
    struct build b = {.model = m,
                      .hp = &m->hp,
                      .g = &m->graph,
                      .arena = &m->arena,
                      .source = source,
                      .table = NO_VALUE,
                      .table_window = NO_VALUE};
    ob_status s = model_find(source, &m->recipe, error);
    b.recipe = m->recipe;
    if (s == OB_OK) s = load_keys(&b, error);
    if (s == OB_OK) s = read_vocab(&b, error);
    if (s == OB_OK) s = m->recipe->derive(&b, error);
    if (s == OB_OK) s = load_tensors(&b, error);
    if (s == OB_OK) s = build_graph(&b, error);
    if (s != OB_OK) {
        model_close(&m);
        return s;
    }
    count_weights(&b);
    *out = m;
    return OB_OK;
}

void model_close(struct model **model) {
    if (!*model) return;
    arena_free(&(*model)->arena);
    free(*model);
    *model = NULL;
}

/* Rows of experts are counted through. */
static bool row_is_finite(const struct weight *w, uint64_t row, float *scratch) {
    const void *matrix = w->experts ? w->expert[row / w->rows] : w->data;
    const char *data = (const char *)matrix + row % w->rows * w->row_bytes;
    w->quant->decode(data, scratch, w->cols / w->quant->block);
    for (uint32_t i = 0; i < w->cols; i++)
        if (!isfinite(scratch[i])) return false;
    return true;
}

const char *model_find_nonfinite(const struct model *model) {
    const char *found = NULL;
    for (uint32_t i = 0; i < model->weights && !found; i++) {
        const struct weight *w = model->weight[i];
        float *scratch = malloc((size_t)w->cols * sizeof *scratch);
        uint64_t rows = (uint64_t)w->rows * (w->experts ? w->experts : 1);
        for (uint64_t row = 0; scratch && row < rows && !found; row++)
            if (!row_is_finite(w, row, scratch)) found = w->name;
        free(scratch);
    }
    return found;
}

static ob_status refuse_head(const struct model *model, const char *option, enum kv_type type,
                             uint32_t dim, ob_error *error) {
    ob_status s = error_set(error, OB_ERR_UNSUPPORTED,
                            "%s takes blocks of %u features, this model's heads have %u",
                            kv_name(type), kv_quant(type)->block, dim);
    error_at(error, source_path(model->source), option, OB_NO_OFFSET);
    return s;
}

ob_status model_check_kv(const struct model *model, struct kv_types types, ob_error *error) {
    for (uint32_t i = 0; i < model->graph.groups; i++) {
        const struct cache_group *g = &model->graph.group[i];
        if (g->k_dim % kv_quant(types.k)->block != 0)
            return refuse_head(model, "kv_type_k", types.k, g->k_dim, error);
        if (g->v_dim % kv_quant(types.v)->block != 0)
            return refuse_head(model, "kv_type_v", types.v, g->v_dim, error);
    }
    return OB_OK;
}

uint64_t model_kv_bytes(const struct model *model, uint64_t tokens, struct kv_types types) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < model->graph.groups; i++) {
        const struct cache_group *g = &model->graph.group[i];
        uint64_t held = tokens;
        /* A window's pages: those of its positions, and the one that is being left. */
        if (g->kind == CACHE_WINDOW && held > (uint64_t)g->window + PAGE_TOKENS)
            held = (uint64_t)g->window + PAGE_TOKENS;
        uint64_t pages = (held + PAGE_TOKENS - 1) / PAGE_TOKENS;
        bytes += pages * PAGE_TOKENS * g->layers * g->kv_heads *
                 kv_position_bytes(types, g->k_dim, g->v_dim);
    }
    return bytes;
}
