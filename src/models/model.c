/* SPDX-License-Identifier: Apache-2.0
 * model.c: see model.h. */
#include "models/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"
#include "models/blocks/pooling.h"
#include "models/load.h"
#include "models/registry.h"

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

static uint32_t cols_of(const struct graph *g, value_id v) {
    return v == NO_VALUE ? 0 : g->value[v].cols;
}
uint32_t model_output_cols(const struct model *model) {
    return cols_of(&model->graph, model->graph.logits);
}
bool model_generates(const struct model *model) {
    return !model->hp.bidirectional && !model->hp.embeds && !model->hp.scores;
}
uint32_t model_embedding_cols(const struct model *model) {
    return cols_of(&model->graph, model->graph.embedding);
}

/* ---- which recipe ---------------------------------------------------------------------------- */

static bool is_wrapper(struct str model_type) {
    static const char *const list[] = {
#define WRAPPER(model_type, hf_class) #model_type,
#include "models/wrappers.def"
#undef WRAPPER
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (str_is(model_type, list[i])) return true;
    return false;
}

/* "qwen2", or of a model with other parts that of its language model. */
static struct str architecture(const struct source *source) {
    source = source_meta(source);
    struct str arch = source_architecture(source);
    return source_kind(source) == SOURCE_HF && is_wrapper(arch) ? source_text_type(source) : arch;
}

/* Of a list separated by '|'. */
static bool is_one_of(struct str name, const char *list) {
    for (const char *p = list; p && *p; p += strcspn(p, "|"), p += *p == '|')
        if (str_eq(name, (struct str){p, strcspn(p, "|")})) return true;
    return false;
}

static bool matches(const struct recipe *r, enum source_kind kind, struct str arch) {
    if (kind == SOURCE_GGUF)
        return (r->gguf && str_is(arch, r->gguf)) || (r->also_gguf && str_is(arch, r->also_gguf));
    return str_is(arch, r->model_type) || is_one_of(arch, r->also_type);
}

static bool is_when(const struct recipe *r, const struct source *source) {
    bool flag = false;
    source = source_meta(source);
    if (!r->when || source_kind(source) == SOURCE_GGUF) return true;
    return source_bool(source, r->when, 0, &flag) && flag;
}

/* The flag that chooses between recipes: true, false, or not there. */
static bool is_flag(const struct source *source, const char *key) {
    bool flag;
    source = source_meta(source);
    return !key || source_kind(source) == SOURCE_GGUF || !source_has(source, key) ||
           source_bool(source, key, 0, &flag);
}

static ob_status refuse_flag(const struct source *source, const char *key, ob_error *error) {
    error_set(error, OB_ERR_FORMAT, "is not true or false");
    error_at(error, source_path(source), key, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

ob_status model_find(const struct source *source, const struct recipe **out, ob_error *error) {
    enum source_kind kind = source_kind(source_meta(source));
    struct str arch = architecture(source);
    const struct recipe *found = NULL;
    for (size_t i = 0; i < recipe_count; i++) {
        const struct recipe *r = recipe_list[i];
        if (!matches(r, kind, arch)) continue;
        if (!is_flag(source, r->when)) return refuse_flag(source, r->when, error);
        if (!is_when(r, source)) continue;
        if (!found || (r->when && !found->when)) found = r;
    }
    if (found) return *out = found, OB_OK;
    ob_status s = error_set(error, OB_ERR_UNSUPPORTED,
                            "architecture \"%.*s\" has no recipe (1bit info --architectures lists "
                            "the %zu there are)",
                            STR_ARG(arch), registry_count());
    error_at(error, source_path(source), NULL, OB_NO_OFFSET);
    return s;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static ob_status refuse_untied(struct build *b, ob_error *error) {
    bool tied = true;
    if (!model_generates(b->model)) return OB_OK;
    if (!build_bool(b, NULL, "/tie_word_embeddings", &tied)) /* the whole's, if there is one */
        build_bool(b, NULL, "tie_word_embeddings", &tied);
    if (tied || build_global(b, "output.weight")) return OB_OK;
    ob_status s = error_set(error, OB_ERR_FORMAT, "is missing and tie_word_embeddings is false");
    error_at(error, source_path(b->source), "lm_head.weight", OB_NO_OFFSET);
    return s;
}

static value_id layers(struct build *b, value_id x) {
    for (b->layer = 0; b->layer < b->hp->layers; b->layer++) {
        b->g->layer = (int32_t)b->layer;
        x = b->recipe->layer(b, x);
    }
    return x;
}

/* Token embeddings, with what the family does to them: learned positions, vectors of types, a norm,
 * a projection to the width of the stream. */
static value_id embedding(struct build *b) {
    struct graph *g = b->g;
    struct weight *position = build_global(b, "position_embd.weight"),
                  *type = build_global(b, "token_types.weight"),
                  *task = build_global(b, "task_types.weight"),
                  *norm = build_global(b, "token_embd_norm.weight"),
                  *wide = build_global(b, "token_embd_wide.weight");
    value_id x = graph_embed(g, build_global(b, "token_embd.weight"), b->hp->embed_scale);
    if (type) x = graph_affine(g, x, NULL, type);
    if (position) x = graph_add(g, x, graph_embed_position(g, position, b->hp->position_offset));
    if (task) x = graph_affine(g, x, NULL, task);
    if (norm) x = block_norm(b, x, norm, build_global(b, "token_embd_norm.bias"));
    return wide ? graph_linear1(g, x, wide, build_global(b, "token_embd_wide.bias")) : x;
}

static value_id logits(struct build *b, value_id x) {
    struct graph *g = b->g;
    struct hparams *hp = b->hp;
    struct weight *out = build_global(b, "output.weight"),
                  *scale = build_global(b, "output.scale");
    if (hp->output_eps > 0) hp->eps = hp->output_eps;
    x = block_norm(b, x, build_global(b, "output_norm.weight"),
                         build_global(b, "output_norm.bias"));
    x = graph_linear1(g, x, out ? out : build_global(b, "token_embd.weight"),
                      build_global(b, "output.bias"));
    if (scale) x = graph_affine(g, x, scale, NULL);
    if (hp->logit_scale != 1) x = graph_scale(g, x, hp->logit_scale);
    return hp->logit_softcap > 0 ? graph_softcap(g, x, hp->logit_softcap) : x;
}

static ob_status build_graph(struct build *b, ob_error *error) {
    struct graph *g = b->g;
    ob_status s = refuse_untied(b, error);
    if (s != OB_OK) return s;
    graph_init(g, b->arena);
    value_id x = embedding(b);
    x = b->recipe->body ? b->recipe->body(b, x) : layers(b, x);
    g->layer = -1;
    if (!model_generates(b->model)) encoder_outputs(b, x);
    else g->logits = logits(b, graph_gather_rows(g, x));
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
        m->active_parameters += one * (!w->experts ? 1 : w->heads ? w->experts
                                                                   : b->hp->route.used);
        m->weight_bytes += weight_bytes(w);
    }
}

ob_status model_open(const struct source *source, const struct model_options *options,
                     struct model **out, ob_error *error) {
    struct model *m = calloc(1, sizeof *m);
    if (!m) return error_memory(error, "a model", sizeof *m);
    m->source = source;
    struct build b = {.model = m,
                      .hp = &m->hp,
                      .g = &m->graph,
                      .arena = &m->arena,
                      .source = source,
                      .meta = source_meta(source),
                      .options = options ? *options : (struct model_options){0},
                      .table = NO_VALUE,
                      .table_window = NO_VALUE};
    ob_status s = model_find(source, &m->recipe, error);
    b.recipe = m->recipe;
    if (s == OB_OK) s = load_keys(&b, error);
    if (s == OB_OK) s = load_vocab(&b, error);
    if (s == OB_OK) s = pooling_read(&b, error);
    if (s == OB_OK) s = m->recipe->derive(&b, error);
    if (s == OB_OK) s = pooling_settle(&b, error);
    s = check_kinds(&b, s, error);
    if (b.recipe && s != OB_ERR_MEMORY && check_zeros(&b, error) != OB_OK) s = OB_ERR_FORMAT;
    if (s == OB_OK) s = check_words(&b, error);
    if (s == OB_OK) s = check_unread(&b, error);
    if (s == OB_OK) s = load_tensors(&b, error);
    if (s == OB_OK) s = build_graph(&b, error);
    s = check_kinds(&b, s, error); /* layers read keys, too */
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

uint32_t model_positions(const struct model *model) {
    const struct graph *g = &model->graph;
    uint32_t most = model->hp.longest ? model->hp.longest : UINT32_MAX;
    for (uint32_t i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        if (n->op != OP_embed_position) continue;
        uint32_t rows = n->weight[0]->rows - (uint32_t)n->u.embed_position.offset;
        if (rows < most) most = rows;
    }
    return most;
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
        if (g->kind == CACHE_STATE) continue;
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
        if (g->kind == CACHE_STATE) {
            bytes += (uint64_t)g->layers * g->state_floats * sizeof(float);
            continue;
        }
        uint64_t held = tokens;
        /* Pages of a window or a chunk: those of its positions, and the one that is being left. */
        if (g->kind != CACHE_FULL && held > (uint64_t)g->window + PAGE_TOKENS)
            held = (uint64_t)g->window + PAGE_TOKENS;
        if (g->every > 1) held /= g->every;
        uint64_t pages = (held + PAGE_TOKENS - 1) / PAGE_TOKENS;
        bytes += pages * PAGE_TOKENS * g->layers * g->kv_heads *
                 kv_position_bytes(types, g->k_dim, g->v_dim);
    }
    return bytes;
}
