/* SPDX-License-Identifier: Apache-2.0
 * export.c: see export.h. */
#include "models/export.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/load.h"
#include "models/transform.h"

enum { PARTS_MAX = 8, NAME_BYTES = 256 };

/* A tensor of the new file: in each of its matrices rows of parts, as part() of recipe.h says. */
struct new_tensor {
    const char *name;
    const struct quant *to;
    uint32_t rows, cols, matrices; /* matrices: experts, or 1; a vector is a column */
    bool stacked;                  /* a dimension for the experts, even if there is one */
    bool vector;
    uint32_t parts;
    struct part {
        const struct weight *w;
        uint32_t outer, total, start;
    } part[PARTS_MAX];
    size_t row_bytes;
    float *row;                    /* scratch, [cols] */
    void *encoded;                 /* scratch, [row_bytes] */
};

struct export {
    const struct model *model;
    struct arena arena;
    struct new_tensor *tensor;
    size_t count;
};

/* ---- which tensors --------------------------------------------------------------------------- */

/* Is the weight's canonical name the row's? Then its layer is set. */
static bool names(const struct tensor *t, const char *name, uint32_t *layer) {
    const char *mark = strstr(t->name, "{i}"), *p = name;
    *layer = 0;
    if (!mark) return strcmp(t->name, name) == 0;
    size_t n = (size_t)(mark - t->name);
    if (strncmp(t->name, name, n) != 0) return false;
    for (p += n; *p >= '0' && *p <= '9'; p++) *layer = *layer * 10 + (uint32_t)(*p - '0');
    return strcmp(p, mark + 3) == 0;
}

/* Does llama.cpp join it to others, as a run of rows ("attn_qkv")? */
static bool is_run(const struct build *b, const struct tensor *t, uint32_t layer) {
    struct transform how;
    return t->gguf && t->from_gguf && transform_parse(b, layer, t->from_gguf, &how) &&
           how.outer == 1 && !how.transposed && !how.each && !how.heads;
}

/* The row that says how the file is to have this weight, of those that exist in its layer: the one
 * that it was read by, or if llama.cpp has another form, that form's. */
static const struct tensor *row_of(const struct export *e, const struct weight *w,
                                   uint32_t *layer) {
    const struct tensor *any = NULL, *other = NULL, *own = NULL, *joined = NULL;
    uint32_t at = 0;
    struct build b = {.model = (struct model *)e->model, .hp = (struct hparams *)&e->model->hp};
    for (const struct tensor *const *table = e->model->recipe->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++) {
            struct transform how;
            if (t->need == UNUSED || !names(t, w->name, &at)) continue;
            if (!transform_parse(&b, at, t->from_hf, &how) || tensor_is_nowhere(&b, t, &how, at))
                continue;
            *layer = at;
            if (!own && t->hf && (!t->gguf || *t->gguf)) own = t;
            if (!joined && !t->hf && is_run(&b, t, at)) joined = t;
            if (!t->hf && !other) other = t;
            if (!any) any = t;
        }
    return joined ? joined : own ? own : other ? other : any;
}

/* The first of '|'-separated patterns. */
static const char *spell(struct export *e, const char *pattern, uint32_t layer) {
    const char *mark = strstr(pattern, "{i}");
    size_t n = strcspn(pattern, "|");
    if (!mark || mark > pattern + n) return arena_copy(&e->arena, pattern, n);
    return arena_printf(&e->arena, "%.*s%u%.*s", (int)(mark - pattern), pattern, layer,
                        (int)(pattern + n - mark - 3), mark + 3);
}

static struct new_tensor *find(struct export *e, const char *name) {
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->tensor[i].name, name) == 0) return &e->tensor[i];
    return NULL;
}

/* Matrices take the wanted format; vectors, routers and what a recurrent op reads stay F32. */
static const struct quant *format_for(const struct weight *w, const struct tensor *row,
                                      const struct quant *type) {
    if (w->rows == 1 || tensor_stays_float(row, w->name)) return quant_list[QUANT_f32];
    if (!type || w->ternary != 0) return w->quant;
    return w->cols % type->block == 0 ? type : quant_list[QUANT_f16];
}

/* Of the ternary matrix that the file calls `name` (ternary.h). */
static ob_status add_factor(struct export *e, const struct weight *w, const char *name,
                            ob_error *error) {
    int n = (int)(strlen(name) - strlen(".weight"));
    char *full = arena_printf(&e->arena, "%.*s.scale", n, name);
    struct weight *factor = arena_alloc(&e->arena, sizeof *factor);
    if (!full || !factor) return error_memory(error, "a name", NAME_BYTES);
    if (find(e, full)) return OB_OK; /* its matrix is several of ours */
    *factor = (struct weight){.name = full,
                              .quant = quant_list[QUANT_f32],
                              .rows = 1,
                              .cols = 1,
                              .row_bytes = sizeof w->ternary,
                              .data = &w->ternary};
    e->tensor[e->count++] = (struct new_tensor){.name = full,
                                                .to = factor->quant,
                                                .rows = 1,
                                                .cols = 1,
                                                .vector = true,
                                                .matrices = 1,
                                                .row_bytes = factor->row_bytes,
                                                .parts = 1,
                                                .part = {{factor, 1, 1, 0}}};
    return OB_OK;
}

static ob_status add(struct export *e, const struct weight *w, const struct quant *type,
                     ob_error *error) {
    uint32_t layer = 0;
    const struct tensor *row = row_of(e, w, &layer);
    assert(row); /* it was loaded through one */
    struct build b = {.model = (struct model *)e->model, .hp = (struct hparams *)&e->model->hp};
    struct transform how = {0};
    bool theirs = !row->gguf || *row->gguf; /* llama.cpp has a form of it, or we take our own */
    if (theirs && row->from_gguf) transform_parse(&b, layer, row->from_gguf, &how);
    assert(!how.transposed && !how.heads); /* llama.cpp's tensors are ours, or joined */
    uint32_t rows = row->rows ? w->rows : w->cols;
    const char *name = spell(e, row->gguf && *row->gguf ? row->gguf : row->name, layer);
    if (!name) return error_memory(error, "a name", NAME_BYTES);
    struct new_tensor *t = find(e, name);
    if (!t) {
        t = &e->tensor[e->count++];
        *t = (struct new_tensor){.name = name,
                                 .to = format_for(w, row, type),
                                 .rows = how.outer ? how.outer * how.total : rows,
                                 .cols = row->rows ? w->cols : 1,
                                 .vector = !row->rows,
                                 .matrices = w->experts ? w->experts : 1,
                                 .stacked = w->experts > 0};
        t->row_bytes = quant_row_bytes(t->to, t->cols);
        t->row = arena_array(&e->arena, t->cols, sizeof *t->row);
        t->encoded = arena_alloc(&e->arena, t->row_bytes);
        if (!t->row || !t->encoded) return error_memory(error, "a row", t->row_bytes);
    }
    assert(t->parts < PARTS_MAX);
    t->part[t->parts++] =
        how.outer ? (struct part){w, how.outer, how.total, how.start}
                  : (struct part){w, 1, rows, 0};
    return w->ternary != 0 ? add_factor(e, w, name, error) : OB_OK;
}

ob_status export_open(const struct model *model, const struct quant *type, struct export **out,
                      ob_error *error) {
    struct export *e = *out = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an export", sizeof *e);
    e->model = model;
    e->tensor = arena_array(&e->arena, 2 * (size_t)model->weights, sizeof *e->tensor);
    ob_status s = e->tensor ? OB_OK : error_memory(error, "tensors", model->weights);
    for (uint32_t i = 0; s == OB_OK && i < model->weights; i++)
        s = add(e, model->weight[i], type, error);
    if (s != OB_OK) export_close(out);
    return s;
}

void export_close(struct export **export) {
    if (!*export) return;
    arena_free(&(*export)->arena);
    free(*export);
    *export = NULL;
}

size_t export_count(const struct export *export) { return export->count; }

struct export_row export_at(const struct export *export, size_t i) {
    const struct new_tensor *t = &export->tensor[i];
    return (struct export_row){.name = t->name,
                               .from = t->part[0].w->quant,
                               .to = t->to,
                               .bytes = (uint64_t)t->row_bytes * t->rows * t->matrices,
                               .parts = t->parts};
}

const char *export_architecture(const struct export *export) {
    const struct recipe *r = export->model->recipe;
    return r->gguf ? r->gguf : r->model_type;
}

/* ---- their bytes ----------------------------------------------------------------------------- */

/* Row r of matrix m, as the file has it. */
static const void *encode_row(struct new_tensor *t, uint32_t m, uint32_t r) {
    const struct weight *w = NULL;
    size_t row = 0;
    for (uint32_t i = 0; i < t->parts && !w; i++) {
        const struct part *p = &t->part[i];
        uint32_t run = (t->vector ? p->w->cols : p->w->rows) / p->outer, at = r % p->total;
        if (at < p->start || at >= p->start + run) continue;
        w = p->w;
        row = (size_t)(r / p->total) * run + at - p->start;
    }
    assert(w); /* the parts are all of it */
    size_t row_bytes = t->vector ? w->quant->bytes : w->row_bytes;
    const char *from = (const char *)(w->expert ? w->expert[m] : w->data) + row * row_bytes;
    if (w->quant == t->to) return from;
    w->quant->decode(from, t->row, t->cols / w->quant->block);
    t->to->encode(t->row, t->encoded, t->cols / t->to->block);
    return t->encoded;
}

static ob_status read_rows(void *user, uint64_t offset, void *out, size_t n, ob_error *error) {
    (void)error;
    struct new_tensor *t = user;
    for (size_t done = 0; done < n;) {
        uint64_t row = (offset + done) / t->row_bytes;
        size_t skip = (size_t)((offset + done) % t->row_bytes), take = t->row_bytes - skip;
        if (take > n - done) take = n - done;
        const char *bytes = encode_row(t, (uint32_t)(row / t->rows), (uint32_t)(row % t->rows));
        memcpy((char *)out + done, bytes + skip, take);
        done += take;
    }
    return OB_OK;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The first of '|'-separated names, or where there are two and the norm is no RMS norm, the second:
 * only epsilons have two. */
static bool full_key(const struct export *e, const char *pattern, char out[NAME_BYTES]) {
    const char *bar = strchr(pattern, '|');
    if (bar && e->model->hp.norm == NORM_LAYER) pattern = bar + 1;
    size_t n = strcspn(pattern, "|");
    if (strncmp(pattern, "{arch}", 6) != 0) return false;
    return snprintf(out, NAME_BYTES, "%s%.*s", export_architecture(e), (int)(n - 6),
                    pattern + 6) < NAME_BYTES;
}

/* One number if all layers have it. Layers with experts have no MLP of their own: they count as the
 * others, or as wide as an expert. */
static void put_layers(struct gguf_writer *w, const char *key, const uint32_t *value,
                       const struct hparams *hp) {
    bool same = true, ffn = value == hp->ffn;
    uint32_t one = 0;
    for (uint32_t i = 0; i < hp->layers && one == 0; i++) one = value[i];
    for (uint32_t i = 0; i < hp->layers; i++) same &= value[i] == one || (ffn && value[i] == 0);
    if (one == 0 && ffn) one = hp->expert_ffn;
    if (same) gguf_put_whole(w, key, GGUF_U32, one);
    else gguf_put_array(w, key, GGUF_U32, value, hp->layers);
}

static void put_number(const struct export *e, struct gguf_writer *w, const struct key *k,
                       const char *name) {
    const struct hparams *hp = &e->model->hp;
    for (uint32_t i = 0; i < hp->numbers; i++) {
        double v = hp->number[i].value;
        if (strcmp(hp->number[i].name, k->name) != 0) continue;
        if (k->type == KEY_WHOLE && k->min == 0 && k->max == 1) { /* a flag */
            gguf_put_whole(w, name, GGUF_BOOL, v != 0);
            return;
        }
        if (v == 0 && k->need != REQUIRED) return;
        bool whole = str_ends(str_of(name), "_length"); /* as llama.cpp wants lengths */
        if (k->type == KEY_REAL && !whole) gguf_put_f32(w, name, (float)v);
        else gguf_put_whole(w, name, GGUF_U32, (uint64_t)v);
    }
}

/* As keys.c reads it, after the recipe has derived what files leave out. */
static void put_key(const struct export *e, struct gguf_writer *w, const struct key *k) {
    const char *field = (const char *)&e->model->hp + k->field;
    char name[NAME_BYTES];
    uint32_t whole, *list;
    float real;
    if (!k->gguf || !full_key(e, k->gguf, name)) return;
    if (k->name) return put_number(e, w, k, name);
    switch (k->type) {
    case KEY_COUNT:
    case KEY_U32:
        memcpy(&whole, field, sizeof whole);
        if (whole != 0 || k->need == REQUIRED) gguf_put_whole(w, name, GGUF_U32, whole);
        break;
    case KEY_F32:
        memcpy(&real, field, sizeof real);
        if (real != 0 || k->need == REQUIRED) gguf_put_f32(w, name, real);
        break;
    case KEY_LAYERS:
        memcpy(&list, field, sizeof list);
        put_layers(w, name, list, &e->model->hp);
        break;
    default: break;
    }
}

static void put_rope(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    if (!hp->rope.freq) return;
    if (hp->rope_dim == 0 && full_key(e, "{arch}.rope.dimension_count", name))
        gguf_put_whole(w, name, GGUF_U32, 2 * hp->rope.half);
    if (full_key(e, "{arch}.rope.freq_base", name)) gguf_put_f32(w, name, hp->rope.base);
    if (hp->rope_window.freq && full_key(e, "{arch}.rope.freq_base_swa", name))
        gguf_put_f32(w, name, hp->rope_window.base);
    bool keyed = strcmp(hp->rope.scaling, "yarn") == 0 || strcmp(hp->rope.scaling, "linear") == 0;
    if (!keyed) return;
    if (full_key(e, "{arch}.rope.scaling.type", name))
        gguf_put_str(w, name, str_of(hp->rope.scaling));
    if (full_key(e, "{arch}.rope.scaling.factor", name)) gguf_put_f32(w, name, hp->rope.factor);
    if (full_key(e, "{arch}.rope.scaling.original_context_length", name))
        gguf_put_whole(w, name, GGUF_U32, (uint64_t)hp->rope.trained);
    if (hp->rope.beta_fast == 0) return;
    if (full_key(e, "{arch}.rope.scaling.yarn_beta_fast", name))
        gguf_put_f32(w, name, hp->rope.beta_fast);
    if (full_key(e, "{arch}.rope.scaling.yarn_beta_slow", name))
        gguf_put_f32(w, name, hp->rope.beta_slow);
}

/* What llama.cpp asks of mixtures, and of layers with windows beside others. */
static void put_layer_kinds(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    uint32_t dense = 0, windows = 0;
    while (dense < hp->layers && hp->experts && hp->experts[dense] == 0) dense++;
    for (uint32_t i = 0; hp->window && i < hp->layers; i++) windows += hp->window[i] > 0;
    if (hp->expert_count && full_key(e, "{arch}.leading_dense_block_count", name))
        gguf_put_whole(w, name, GGUF_U32, dense);
    if (hp->expert_count && full_key(e, "{arch}.expert_gating_func", name) &&
        (hp->route.score == ROUTE_SIGMOID || hp->route.score == ROUTE_SOFTMAX))
        gguf_put_whole(w, name, GGUF_U32, hp->route.score == ROUTE_SIGMOID ? 2 : 1);
    if (windows == 0 || windows == hp->layers) return;
    bool *slides = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *slides);
    for (uint32_t i = 0; slides && i < hp->layers; i++) slides[i] = hp->window[i] > 0;
    if (slides && full_key(e, "{arch}.attention.sliding_window_pattern", name))
        gguf_put_array(w, name, GGUF_BOOL, slides, hp->layers);
}

/* Each row of every table is put once: a later table may name a key again. */
static bool is_later(const struct recipe *r, const struct key *k) {
    bool seen = false;
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *other = *table; other->gguf || other->hf; other++) {
            if (other == k) seen = true;
            else if (seen && other->gguf && k->gguf && strcmp(other->gguf, k->gguf) == 0)
                return true;
        }
    return false;
}

/* put_layer_kinds and put_rope write these from what was derived. */
static bool is_computed(const struct key *k) {
    static const char *const list[] = {
        "{arch}.leading_dense_block_count", "{arch}.expert_gating_func", "{arch}.rope.freq_base",
        "{arch}.rope.freq_base_swa", "{arch}.vocab_size", "{arch}.attention.sliding_window_pattern",
        "{arch}.rope.scaling.type", "{arch}.rope.scaling.factor",
        "{arch}.rope.scaling.original_context_length", "{arch}.rope.scaling.yarn_beta_fast",
        "{arch}.rope.scaling.yarn_beta_slow",
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (k->gguf && strcmp(k->gguf, list[i]) == 0) return true;
    return false;
}

/* Llama 3's scaling is one divisor a pair in GGUF files. */
static void put_rope_freqs(struct export *e, struct gguf_writer *w) {
    const struct rope *r = &e->model->hp.rope;
    if (strcmp(r->scaling, "llama3") != 0) return;
    float *divisor = arena_array(&e->arena, r->half, sizeof *divisor);
    if (!divisor) return;
    for (uint32_t i = 0; i < r->half; i++)
        divisor[i] = (float)(pow((double)r->base, -(double)i / r->half) / (double)r->freq[i]);
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = STR_LIT("rope_freqs.weight"),
                                                 .quant = quant_list[QUANT_f32],
                                                 .ndim = 1,
                                                 .dim = {r->half},
                                                 .data = divisor});
}

void export_put(struct export *e, struct gguf_writer *w) {
    const struct recipe *r = e->model->recipe;
    gguf_put_str(w, "general.architecture", str_of(export_architecture(e)));
    struct str config = source_config_text(e->model->source);
    if (config.n) gguf_put_str(w, SOURCE_CONFIG_KEY, config);
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (!is_later(r, k) && !is_computed(k)) put_key(e, w, k);
    put_rope(e, w);
    put_layer_kinds(e, w);
    char vocab[NAME_BYTES]; /* for files without a tokenizer */
    if (full_key(e, "{arch}.vocab_size", vocab))
        gguf_put_whole(w, vocab, GGUF_U32, e->model->hp.vocab);
    for (size_t i = 0; i < e->count; i++) {
        struct new_tensor *t = &e->tensor[i];
        struct gguf_new_tensor out = {.name = str_of(t->name), .quant = t->to, .read = read_rows,
                                      .user = t, .dim = {t->cols, t->rows, t->matrices}};
        if (t->vector) { /* one dimension; one of each expert has two */
            out.dim[0] = t->rows;
            out.dim[1] = t->matrices;
        }
        out.ndim = (t->vector ? 1 : 2) + t->stacked;
        gguf_put_tensor(w, &out);
    }
    put_rope_freqs(e, w);
}
