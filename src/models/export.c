/* SPDX-License-Identifier: Apache-2.0
 * export.c: see export.h; export_keys.c has the keys. */
#include "models/export_inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/formula.h"
#include "models/load.h"
#include "models/transform.h"

/* ---- which tensors --------------------------------------------------------------------------- */

bool export_names(const struct tensor *t, const char *name, uint32_t *layer) {
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
            if (t->need == UNUSED || !export_names(t, w->name, &at)) continue;
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

struct new_tensor *export_find(struct export *e, const char *name) {
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
    if (export_find(e, full)) return OB_OK; /* its matrix is several of ours */
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
    struct new_tensor *t = export_find(e, name);
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

/* How the file has it: ndim and dim. */
static struct gguf_new_tensor shape_of(struct new_tensor *t) {
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
    return out;
}

void export_put(struct export *e, struct gguf_writer *w) {
    export_put_keys(e, w);
    for (size_t i = 0; i < e->count; i++) {
        struct gguf_new_tensor out = shape_of(&e->tensor[i]);
        gguf_put_tensor(w, &out);
    }
}
