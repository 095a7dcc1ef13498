/* SPDX-License-Identifier: Apache-2.0
 * export.c: see export.h. */
#include "models/export.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/blocks/deltanet.h"
#include "models/blocks/pooling.h"
#include "models/formula.h"
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
    bool whole;                    /* whole numbers, I32 there; `to` is F32, as long */
    uint32_t line;                 /* not 0: a vector in rows so long, a matrix of so many rows */
    const struct export *of;
    uint32_t parts;
    struct part {
        const struct weight *w;
        uint32_t outer, total, start;
        uint32_t every;   /* the weight has each row so often */
        uint32_t each;    /* not 0: of so many rows of a head from `start` on; its own matrix */
        bool turned;      /* the file has [in, out] */
        const char *name; /* of rows that are multiplied: by recipe.gguf_factor of it; or NULL */
    } part[PARTS_MAX];
    size_t row_bytes;
    float *row;                    /* scratch, [cols] */
    float *turned;                 /* scratch, a row of a part that is turned */
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
    const struct tensor *any = NULL, *other = NULL, *own = NULL, *joined = NULL, *t;
    uint32_t at = 0;
    struct build b = {.model = (struct model *)e->model, .hp = (struct hparams *)&e->model->hp};
    for (size_t n = 0; (t = recipe_table(e->model->recipe, n)); n++)
        for (; t->name; t++) {
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

/* Matrices take the wanted format; vectors, routers and what a recurrent op reads stay F32. `cols`
 * of the new tensor; changed: its numbers are not the weight's, or not in its rows. */
static const struct quant *format_for(const struct weight *w, const struct tensor *row,
                                      const struct quant *type, uint32_t cols, bool changed) {
    if (w->rows == 1 || tensor_stays_float(row, w->name)) return quant_list[QUANT_f32];
    if (!type || w->ternary != 0) type = w->quant;
    bool fits = cols % type->block == 0 && (type->encode || !changed);
    return fits ? type : quant_list[QUANT_f16];
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
    struct new_tensor *t = &e->tensor[e->count++];
    *t = (struct new_tensor){.name = full,
                             .to = factor->quant,
                             .rows = 1,
                             .cols = 1,
                             .vector = true,
                             .matrices = 1,
                             .row_bytes = factor->row_bytes,
                             .parts = 1};
    t->part[0] = (struct part){.w = factor, .outer = 1, .total = 1, .every = 1};
    return OB_OK;
}

static uint32_t line_of(const struct build *b, const struct tensor *row, uint32_t layer) {
    return row->gguf_row ? (uint32_t)formula_value(b->hp, layer, str_of(row->gguf_row)) : 0;
}

/* How the file has a weight: by its row's from_gguf. */
struct form {
    struct transform how;
    bool heads;           /* rows of a matrix that has other rows of each head, too */
    uint32_t rows, cols;
    const char *factor;   /* the row's name, if its numbers are multiplied */
};

static struct form form_of(const struct export *e, const struct build *b, const struct weight *w,
                           const struct tensor *row, uint32_t layer) {
    struct form f = {.factor = e->model->recipe->gguf_factor ? row->name : NULL};
    bool theirs = !row->gguf || *row->gguf; /* llama.cpp has a form of it, or we take our own */
    if (theirs && row->from_gguf) transform_parse(b, layer, row->from_gguf, &f.how);
    f.heads = f.how.each && (f.how.transposed || f.how.each != w->rows);
    assert(!f.how.heads && (f.heads || !f.how.transposed)); /* its tensors are ours, or joined */
    f.rows = row->rows ? w->rows : w->cols;
    if (f.how.times) f.rows /= f.how.times;
    f.cols = f.how.transposed ? w->rows : row->rows ? w->cols : 1;
    return f;
}

/* A tensor of which the weight is the first part. */
static struct new_tensor new_for(const struct export *e, const struct build *b,
                                 const struct weight *w, const struct tensor *row, uint32_t layer,
                                 const struct form *f, const struct quant *type) {
    struct transform hf;
    return (struct new_tensor){
        .of = e,
        .to = format_for(w, row, type, f->cols, f->heads || f->factor),
        .rows = f->heads        ? w->experts * f->how.each
                : f->how.outer ? f->how.outer * f->how.total
                               : f->rows,
        .cols = f->cols,
        .vector = !row->rows,
        .whole = transform_parse(b, layer, row->from_hf, &hf) && hf.below > 0,
        .line = line_of(b, row, layer),
        .matrices = w->experts && !f->heads ? w->experts : 1,
        .stacked = w->experts > 0 && !f->heads};
}

/* The weight of a layer, as tensor or as part of the one called so for `as`, which is that layer or
 * another that has the same. */
static ob_status add(struct export *e, const struct weight *w, const struct tensor *row,
                     uint32_t layer, uint32_t as, const struct quant *type, ob_error *error) {
    struct build b = {.model = (struct model *)e->model, .hp = (struct hparams *)&e->model->hp};
    const struct form f = form_of(e, &b, w, row, layer);
    const struct transform *how = &f.how;
    const char *name = spell(e, row->gguf && *row->gguf ? row->gguf : row->name, as);
    if (!name) return error_memory(error, "a name", NAME_BYTES);
    struct new_tensor *t = find(e, name);
    if (!t) {
        t = &e->tensor[e->count++];
        *t = new_for(e, &b, w, row, layer, &f, type);
        t->name = name;
        t->row_bytes = quant_row_bytes(t->to, t->cols);
        t->row = arena_array(&e->arena, t->cols, sizeof *t->row);
        t->encoded = arena_alloc(&e->arena, t->row_bytes);
        if (!t->row || !t->encoded) return error_memory(error, "a row", t->row_bytes);
    }
    if (how->transposed && !(t->turned = arena_array(&e->arena, w->cols, sizeof *t->turned)))
        return error_memory(error, "a row", w->cols * sizeof *t->turned);
    assert(t->parts < PARTS_MAX);
    t->part[t->parts++] = (struct part){.w = w,
                                        .outer = how->outer ? how->outer : 1,
                                        .total = how->outer ? how->total : f.rows,
                                        .start = f.heads ? how->each_start : how->start,
                                        .every = how->times ? how->times : 1,
                                        .each = f.heads ? how->each : 0,
                                        .turned = how->transposed,
                                        .name = f.factor};
    return w->ternary != 0 ? add_factor(e, w, name, error) : OB_OK;
}

/* Embeddings that are the output, too, but multiplied by another factor in GGUF. */
static ob_status add_output(struct export *e, const struct weight *embeddings,
                            const struct quant *type, ob_error *error) {
    uint32_t layer;
    for (uint32_t i = 0; i < e->model->weights; i++)
        if (strcmp(e->model->weight[i]->name, "output.weight") == 0) return OB_OK;
    const struct tensor *row = row_of(e, &(struct weight){.name = "output.weight"}, &layer);
    return row ? add(e, embeddings, row, 0, 0, type, error) : OB_OK;
}

/* By its row of the recipe; where llama.cpp wants it again, in the layers that read its keys. */
static ob_status add_weight(struct export *e, const struct weight *w, const struct quant *type,
                            ob_error *error) {
    const struct hparams *hp = &e->model->hp;
    uint32_t layer = 0;
    const struct tensor *row = row_of(e, w, &layer);
    assert(row); /* it was loaded through one */
    if (row->gguf_key) return OB_OK;
    ob_status s = add(e, w, row, layer, layer, type, error);
    if (s == OB_OK && e->model->recipe->gguf_factor && strcmp(row->name, "token_embd.weight") == 0)
        s = add_output(e, w, type, error);
    for (uint32_t i = layer + 1; s == OB_OK && row->gguf_again && i < hp->layers; i++)
        if (hp->shared_use[i] && hp->shared_from[i] == layer)
            s = add(e, w, row, layer, i, type, error);
    return s;
}

/* As many as there may be: some weights have a factor, some are there for each layer. */
static size_t tensors_at_most(const struct model *m) {
    size_t again = 0;
    for (size_t n = 0; recipe_table(m->recipe, n); n++)
        for (const struct tensor *t = recipe_table(m->recipe, n); t->name; t++)
            again += t->gguf_again;
    return 2 * (size_t)m->weights + again * m->hp.layers + 1;
}

bool export_drops(const struct model *model, const struct weight *w) {
    bool classifies = false;
    for (uint32_t i = 0; i < model->weights; i++)
        classifies |= strcmp(model->weight[i]->name, "cls.output.weight") == 0;
    return !classifies && strncmp(w->name, "cls.", 4) == 0;
}

ob_status export_open(const struct model *model, const struct quant *type, struct export **out,
                      ob_error *error) {
    struct export *e = *out = calloc(1, sizeof *e);
    if (!e) return error_memory(error, "an export", sizeof *e);
    e->model = model;
    e->tensor = arena_array(&e->arena, tensors_at_most(model), sizeof *e->tensor);
    ob_status s = e->tensor ? OB_OK : error_memory(error, "tensors", model->weights);
    for (uint32_t i = 0; s == OB_OK && i < model->weights; i++)
        if (!export_drops(model, model->weight[i]))
            s = add_weight(e, model->weight[i], type, error);
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
    return r->gguf ? r->gguf : r->written_as ? r->written_as : r->model_type;
}

/* ---- their bytes ----------------------------------------------------------------------------- */

static void multiply(struct new_tensor *t, const char *name, uint32_t r) {
    const struct model *m = t->of->model;
    struct build b = {.model = (struct model *)m, .hp = (struct hparams *)&m->hp};
    const float factor = m->recipe->gguf_factor(&b, name, r);
    for (uint32_t i = 0; i < t->cols; i++) t->row[i] *= factor;
}

/* Row r of what heads' matrices are joined in. */
static const void *encode_head_row(struct new_tensor *t, uint32_t r) {
    const struct part *p = t->part;
    uint32_t head = r / p->each, at = r % p->each;
    while (at < p->start || at - p->start >= (p->turned ? p->w->cols : p->w->rows)) p++;
    const struct weight *w = p->w;
    const char *matrix = w->expert[head];
    at -= p->start;
    if (!p->turned) {
        w->quant->decode(matrix + at * w->row_bytes, t->row, t->cols / w->quant->block);
    } else {
        for (uint32_t c = 0; c < t->cols; c++) {
            w->quant->decode(matrix + c * w->row_bytes, t->turned, w->cols / w->quant->block);
            t->row[c] = t->turned[at];
        }
    }
    t->to->encode(t->row, t->encoded, t->cols / t->to->block);
    return t->encoded;
}

/* Row r of matrix m, as the file has it. */
static const void *encode_row(struct new_tensor *t, uint32_t m, uint32_t r) {
    const struct weight *w = NULL;
    const struct part *p = NULL;
    size_t row = 0;
    if (t->part[0].each) return encode_head_row(t, r);
    for (uint32_t i = 0; i < t->parts && !w; i++) {
        p = &t->part[i];
        uint32_t run = (t->vector ? p->w->cols : p->w->rows) / p->outer, at = r % p->total;
        if (at < p->start || at >= p->start + run) continue;
        w = p->w;
        row = ((size_t)(r / p->total) * run + at - p->start) * p->every;
    }
    assert(w); /* the parts are all of it */
    size_t row_bytes = t->vector ? w->quant->bytes : w->row_bytes;
    const char *from = (const char *)(w->expert ? w->expert[m] : w->data) + row * row_bytes;
    for (uint32_t i = 0; t->whole && i < t->cols; i++) {
        float number;
        memcpy(&number, from + i * sizeof number, sizeof number);
        memcpy((char *)t->encoded + i * sizeof number, &(int32_t){(int32_t)number}, sizeof number);
    }
    if (t->whole) return t->encoded;
    if (w->quant == t->to && !p->name) return from;
    w->quant->decode(from, t->row, t->cols / w->quant->block);
    if (p->name) multiply(t, p->name, (uint32_t)row);
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
    if (strncmp(pattern, "{arch}", 6) != 0) return snprintf(out, NAME_BYTES, "%s", pattern) > 0;
    return snprintf(out, NAME_BYTES, "%s%.*s", export_architecture(e), (int)(n - 6),
                    pattern + 6) < NAME_BYTES;
}

/* Has llama.cpp a list of the recurrent layers? Else it knows them by having no key heads. */
static bool lists_recurrent(const struct model *m) {
    for (const struct key *const *table = m->recipe->keys; *table; table++)
        if (*table == deltanet_keys) return true;
    return m->recipe->gguf_lists_recurrent;
}

/* May layers in which it is 0 be given what the others have? Those with experts have no MLP of
 * their own, recurrent ones no heads, and what shares keys has none. */
static bool may_differ(const struct model *m, const uint32_t *value, uint32_t layer) {
    const struct hparams *hp = &m->hp;
    if (value == hp->ffn) return !hp->recurrent || (hp->experts && hp->experts[layer] > 0);
    if (value == hp->kv_heads) return !hp->recurrent || lists_recurrent(m);
    return value == hp->heads;
}

/* One number if all layers have it. The MLP of a layer with experts counts as wide as an expert
 * where no other layer has one. */
static void put_layers(const struct export *e, struct gguf_writer *w, const char *key,
                       const uint32_t *value) {
    const struct hparams *hp = &e->model->hp;
    const bool ffn = value == hp->ffn;
    bool same = true;
    uint32_t one = 0, *each = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *each);
    for (uint32_t i = 0; i < hp->layers && one == 0; i++) one = value[i];
    if (one == 0 && ffn) one = hp->expert_ffn;
    for (uint32_t i = 0; each && i < hp->layers; i++) {
        same &= value[i] == one || (value[i] == 0 && may_differ(e->model, value, i));
        each[i] = ffn && hp->experts && hp->experts[i] > 0 ? hp->expert_ffn : value[i];
    }
    if (same) gguf_put_whole(w, key, GGUF_U32, one);
    else if (each) gguf_put_array(w, key, GGUF_U32, each, hp->layers);
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
        put_layers(e, w, name, list);
        break;
    default: break;
    }
}

/* How the pairs are shared by the three positions of an image's patch; in a text they are equal. */
static void put_rope_sections(const struct export *e, struct gguf_writer *w) {
    static const char *const list[] = {"rope_parameters.mrope_section",
                                       "rope_scaling.mrope_section",
                                       "{arch}.rope.dimension_sections"};
    const struct source *meta = source_meta(e->model->source);
    char name[NAME_BYTES];
    uint32_t pairs[4] = {0};
    bool any = false;
    for (size_t k = 0; k < sizeof list / sizeof list[0] && !any; k++)
        for (uint64_t v, i = 0; i < 4 && source_u64(meta, list[k], i, &v); i++) {
            pairs[i] = (uint32_t)v;
            any = true;
        }
    if (any && full_key(e, "{arch}.rope.dimension_sections", name))
        gguf_put_array(w, name, GGUF_U32, pairs, 4);
}

static void put_longrope(const struct export *e, struct gguf_writer *w) {
    const struct rope *r = &e->model->hp.rope;
    char name[NAME_BYTES];
    if (full_key(e, "{arch}.rope.scaling.type", name)) gguf_put_str(w, name, STR_LIT("longrope"));
    if (full_key(e, "{arch}.rope.scaling.original_context_length", name))
        gguf_put_whole(w, name, GGUF_U32, r->original);
    if (full_key(e, "{arch}.rope.scaling.attn_factor", name)) gguf_put_f32(w, name, r->magnitude);
}

/* The rope that is scaled: all layers', or of layers with a rope of their own. */
static const struct rope *scaled(const struct hparams *hp) {
    for (uint32_t i = 0; hp->layer_rope && hp->rope.scaling[0] == 0 && i < hp->layers; i++)
        if (hp->layer_rope[i]->scaling[0]) return hp->layer_rope[i];
    return &hp->rope;
}

static void put_rope(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    put_rope_sections(e, w);
    if (!hp->rope.freq) return;
    if (hp->rope_dim == 0 && full_key(e, "{arch}.rope.dimension_count", name))
        gguf_put_whole(w, name, GGUF_U32, 2 * hp->rope.half);
    if (full_key(e, "{arch}.rope.freq_base", name)) gguf_put_f32(w, name, hp->rope.base);
    if (hp->rope_window.freq && full_key(e, "{arch}.rope.freq_base_swa", name))
        gguf_put_f32(w, name, hp->rope_window.base);
    if (hp->rope_window.freq && hp->rope_window.half != hp->rope.half &&
        full_key(e, "{arch}.rope.dimension_count_swa", name))
        gguf_put_whole(w, name, GGUF_U32, 2 * hp->rope_window.half);
    if (hp->rope.freq_long) put_longrope(e, w);
    const struct rope *rope = scaled(hp);
    bool keyed = strcmp(rope->scaling, "yarn") == 0 || strcmp(rope->scaling, "linear") == 0;
    if (!keyed) return;
    if (full_key(e, "{arch}.rope.scaling.type", name))
        gguf_put_str(w, name, str_of(rope->scaling));
    if (full_key(e, "{arch}.rope.scaling.factor", name)) gguf_put_f32(w, name, rope->factor);
    if (full_key(e, "{arch}.rope.scaling.original_context_length", name))
        gguf_put_whole(w, name, GGUF_U32, (uint64_t)rope->trained);
    if (rope->beta_fast == 0) return;
    if (full_key(e, "{arch}.rope.scaling.yarn_beta_fast", name))
        gguf_put_f32(w, name, rope->beta_fast);
    if (full_key(e, "{arch}.rope.scaling.yarn_beta_slow", name))
        gguf_put_f32(w, name, rope->beta_slow);
}

/* What llama.cpp asks of mixtures. A softmax of the chosen is one over all, normalized. */
static void put_router(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    const struct route_args *r = &hp->route;
    char name[NAME_BYTES];
    uint32_t dense = 0;
    if (hp->expert_count == 0 || !hp->experts) return;
    while (dense < hp->layers && hp->experts[dense] == 0) dense++;
    if (full_key(e, "{arch}.leading_dense_block_count", name))
        gguf_put_whole(w, name, GGUF_U32, dense);
    static const uint32_t func[ROUTE_SCORES] = {
        [ROUTE_SOFTMAX] = 1, [ROUTE_SIGMOID] = 2, [ROUTE_SQRT_SOFTPLUS] = 4};
    if (full_key(e, "{arch}.expert_gating_func", name) && func[r->score])
        gguf_put_whole(w, name, GGUF_U32, func[r->score]);
    if (full_key(e, "{arch}.expert_weights_norm", name))
        gguf_put_whole(w, name, GGUF_BOOL, r->normalize || r->score == ROUTE_SOFTMAX_CHOSEN);
    if (r->scale != 0 && full_key(e, "{arch}.expert_weights_scale", name))
        gguf_put_f32(w, name, r->scale);
    if (r->groups <= 1) return;
    if (full_key(e, "{arch}.expert_group_count", name))
        gguf_put_whole(w, name, GGUF_U32, r->groups);
    if (full_key(e, "{arch}.expert_group_used_count", name))
        gguf_put_whole(w, name, GGUF_U32, r->groups_used);
}

/* A number of the family's own? */
static bool names_key(const struct recipe *r, const char *gguf) {
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (k->name && k->gguf && strcmp(k->gguf, gguf) == 0) return true;
    return false;
}

/* Of layers with windows beside others. */
static void put_windows(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    uint32_t windows = 0;
    if (names_key(e->model->recipe, "{arch}.attention.sliding_window_pattern")) return;
    for (uint32_t i = 0; hp->window && i < hp->layers; i++) windows += hp->window[i] > 0;
    if (windows == 0 || windows == hp->layers) return;
    bool *slides = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *slides);
    for (uint32_t i = 0; slides && i < hp->layers; i++) slides[i] = hp->window[i] > 0;
    if (slides && full_key(e, "{arch}.attention.sliding_window_pattern", name))
        gguf_put_array(w, name, GGUF_BOOL, slides, hp->layers);
}

static void put_recurrent(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    if (!lists_recurrent(e->model)) return;
    bool *recurrent = arena_array(&((struct export *)e)->arena, hp->layers, sizeof *recurrent);
    for (uint32_t i = 0; recurrent && i < hp->layers; i++) recurrent[i] = hp->recurrent[i];
    if (recurrent && full_key(e, "{arch}.attention.recurrent_layers", name))
        gguf_put_array(w, name, GGUF_BOOL, recurrent, hp->layers);
}

/* Which layers choose their keys, where others take what these chose. */
static void put_indexers(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    if (hp->chooses && full_key(e, "{arch}.attention.indexer.types", name))
        gguf_put_array(w, name, GGUF_BOOL, hp->chooses, hp->layers);
}

/* Layers whose keys are blocks beside a window. */
static void put_blocks(const struct export *e, struct gguf_writer *w) {
    const struct hparams *hp = &e->model->hp;
    char name[NAME_BYTES];
    if (hp->every && full_key(e, "{arch}.attention.compress_ratios", name))
        gguf_put_array(w, name, GGUF_U32, hp->every, hp->layers);
    if (hp->glu_clamp.alpha == 1 && full_key(e, "{arch}.swiglu_clamp_exp", name))
        gguf_put_f32(w, name, hp->glu_clamp.limit);
}

/* Numbers that are tensors elsewhere, a layer each. */
static void put_listed(struct export *e, struct gguf_writer *w, const struct tensor *t) {
    const struct model *m = e->model;
    float *list = arena_array(&e->arena, m->hp.layers, sizeof *list);
    for (uint32_t i = 0, layer = 0; list && i < m->weights; i++)
        if (names(t, m->weight[i]->name, &layer) && layer < m->hp.layers)
            memcpy(&list[layer], m->weight[i]->data, sizeof *list);
    if (list) gguf_put_array(w, t->gguf_key, GGUF_F32, list, m->hp.layers);
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

/* put_router, put_windows and put_rope write these from what was derived; layers that guess further
 * tokens are not written, nor is their number. */
static bool is_computed(const struct key *k) {
    static const char *const list[] = {
        "{arch}.leading_dense_block_count", "{arch}.attention.sliding_window_pattern",
        "{arch}.expert_gating_func", "{arch}.rope.freq_base", "{arch}.rope.freq_base_swa",
        "{arch}.vocab_size",
        "{arch}.rope.scaling.type", "{arch}.rope.scaling.factor",
        "{arch}.rope.scaling.original_context_length", "{arch}.rope.scaling.yarn_beta_fast",
        "{arch}.rope.scaling.yarn_beta_slow", "{arch}.expert_weights_norm",
        "{arch}.expert_weights_scale", "{arch}.expert_group_count",
        "{arch}.expert_group_used_count", "{arch}.nextn_predict_layers",
    };
    const size_t first = k->name ? 2 : 0; /* the first two may be a family's own numbers */
    for (size_t i = first; i < sizeof list / sizeof list[0]; i++)
        if (k->gguf && strcmp(k->gguf, list[i]) == 0) return true;
    return false;
}

/* Frequencies as GGUF files have them: a divisor a pair. */
static void put_divisors(struct export *e, struct gguf_writer *w, const char *name,
                         const float *freq) {
    const struct rope *r = &e->model->hp.rope;
    float *divisor = arena_array(&e->arena, r->half, sizeof *divisor);
    if (!divisor) return;
    for (uint32_t i = 0; i < r->half; i++)
        divisor[i] = freq[i] > 0 ? (float)(pow((double)r->base, -(double)i / r->half) /
                                           (double)freq[i])
                                 : 1e30f; /* as llama.cpp has pairs that do not turn */
    gguf_put_tensor(w, &(struct gguf_new_tensor){.name = str_of(name),
                                                 .quant = quant_list[QUANT_f32],
                                                 .ndim = 1,
                                                 .dim = {r->half},
                                                 .data = divisor});
}

/* The names of a classifier's classes, by whose number llama.cpp knows the scores. */
static void put_labels(struct export *e, struct gguf_writer *w) {
    const struct new_tensor *scores = find(e, "cls.output.weight");
    char name[NAME_BYTES], key[32];
    struct str *label;
    if (!scores || !full_key(e, "{arch}.classifier.output_labels", name)) return;
    if (!(label = arena_array(&e->arena, scores->rows, sizeof *label))) return;
    for (uint32_t i = 0; i < scores->rows; i++) {
        const char *otherwise = arena_printf(&e->arena, "LABEL_%u", i);
        snprintf(key, sizeof key, "id2label.%u", i);
        if (!source_str(source_meta(e->model->source), key, 0, &label[i]))
            label[i] = str_of(otherwise ? otherwise : "");
    }
    gguf_put_strs(w, name, label, scores->rows);
}

static void put_rope_tensors(struct export *e, struct gguf_writer *w) {
    const struct rope *r = &e->model->hp.rope;
    bool still = r->freq && r->freq[r->half - 1] == 0;
    if (still || strcmp(r->scaling, "llama3") == 0)
        put_divisors(e, w, "rope_freqs.weight", r->freq);
    if (!r->freq_long) return;
    put_divisors(e, w, "rope_factors_long.weight", r->freq_long);
    put_divisors(e, w, "rope_factors_short.weight", r->freq);
}

void export_put(struct export *e, struct gguf_writer *w) {
    const struct recipe *r = e->model->recipe;
    gguf_put_str(w, "general.architecture", str_of(export_architecture(e)));
    struct str config = source_config_text(e->model->source);
    if (config.n) gguf_put_str(w, SOURCE_CONFIG_KEY, config);
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (!is_later(r, k) && !is_computed(k)) put_key(e, w, k);
    for (const struct tensor *const *table = r->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++)
            if (t->gguf_key) put_listed(e, w, t);
    put_rope(e, w);
    put_router(e, w);
    put_windows(e, w);
    put_recurrent(e, w);
    put_indexers(e, w);
    put_blocks(e, w);
    char name[NAME_BYTES];
    if (full_key(e, "{arch}.vocab_size", name)) /* for files without a tokenizer */
        gguf_put_whole(w, name, GGUF_U32, e->model->hp.vocab);
    if (e->model->hp.bidirectional && full_key(e, "{arch}.attention.causal", name))
        gguf_put_whole(w, name, GGUF_BOOL, false);
    pooling_put(&e->model->hp, export_architecture(e), w);
    put_labels(e, w);
    for (size_t i = 0; i < e->count; i++) {
        struct new_tensor *t = &e->tensor[i];
        struct gguf_new_tensor out = {.name = str_of(t->name),
                                      .quant = t->whole ? NULL : t->to, .read = read_rows,
                                      .user = t, .dim = {t->cols, t->rows, t->matrices}};
        if (t->vector) { /* one dimension; one of each expert has two */
            out.dim[0] = t->line ? t->line : t->rows;
            out.dim[1] = t->line ? t->rows / t->line : t->matrices;
        }
        out.ndim = (t->vector && !t->line ? 1 : 2) + t->stacked;
        if (t->line && !t->vector) {
            out.dim[1] = t->line;
            out.dim[2] = t->rows / t->line;
            out.ndim = 3;
        }
        gguf_put_tensor(w, &out);
    }
    put_rope_tensors(e, w);
}
