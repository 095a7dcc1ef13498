/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c: from a recipe's tensors[] to canonical weights: each tensor is looked up in the
 * source's spelling, its shape compared with the formula, and transformed if its Hugging Face form
 * is not the canonical one (a copy in the model's arena, counted). Vectors always become F32; the
 * matrices of experts stay where they are. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "models/load.h"

enum { NAME_BYTES = 256 };

/* ---- shape formulas -------------------------------------------------------------------------- */

/* A hyperparameter by its name in a formula. */
static uint64_t dimension(const struct hparams *hp, uint32_t layer, struct str name) {
    struct {
        const char *name;
        uint64_t value;
    } table[] = {
        {"expert_ffn", hp->expert_ffn}, {"experts", hp->experts[layer]},
        {"ffn", hp->ffn[layer]},        {"heads", hp->heads[layer]},
        {"k_dim", hp->k_dim},           {"kv_heads", hp->kv_heads[layer]},
        {"v_dim", hp->v_dim},           {"vocab", hp->vocab},
        {"width", hp->width},           {"rope_half", hp->rope.half},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (str_is(name, table[i].name)) return table[i].value;
    assert(false); /* no hyperparameter */
    return 0;
}

/* "heads*k_dim" in this layer; UINT64_MAX on overflow of 32 bits. */
static uint64_t product(const struct hparams *hp, uint32_t layer, const char *formula) {
    uint64_t out = 1;
    for (const char *p = formula; *p;) {
        size_t n = strcspn(p, "*");
        out *= dimension(hp, layer, (struct str){p, n});
        if (out > UINT32_MAX) return UINT64_MAX;
        p += n + (p[n] == '*');
    }
    return out;
}

/* ---- transforms ------------------------------------------------------------------------------ */

static void *copy_rows(struct build *b, const struct weight *w, ob_error *error) {
    size_t bytes = w->row_bytes * w->rows;
    char *out = arena_alloc(b->arena, bytes);
    if (!out) error_memory(error, w->name, bytes);
    b->model->copied++;
    b->model->copied_bytes += bytes;
    return out;
}

/* A vector as F32, `add` added. */
static ob_status to_f32(struct build *b, struct weight *w, float add, ob_error *error) {
    const struct quant *f32 = quant_list[QUANT_f32];
    if (w->quant == f32 && add == 0 && (uintptr_t)w->data % sizeof(float) == 0) return OB_OK;
    struct weight from = *w;
    w->quant = f32;
    w->row_bytes = quant_row_bytes(f32, w->cols);
    float *out = copy_rows(b, w, error);
    if (!out) return OB_ERR_MEMORY;
    from.quant->decode(from.data, out, (size_t)w->cols * w->rows / from.quant->block);
    for (size_t i = 0; add != 0 && i < (size_t)w->cols * w->rows; i++) out[i] += add;
    w->data = out;
    return OB_OK;
}

/* Rows of each head from halves to pairs: row i of the first half goes to 2i, of the second to
 * 2i + 1. Rows are whole quant blocks, so this works in any format. */
static ob_status permute(struct build *b, struct weight *w, uint32_t heads, ob_error *error) {
    char *out = copy_rows(b, w, error);
    if (!out) return OB_ERR_MEMORY;
    uint32_t dim = w->rows / heads, half = dim / 2;
    const char *in = w->data;
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < dim; i++) {
            size_t from = (size_t)h * dim + i,
                   to = (size_t)h * dim + (i < half ? 2 * i : 2 * (i - half) + 1);
            memcpy(out + to * w->row_bytes, in + from * w->row_bytes, w->row_bytes);
        }
    w->data = out;
    return OB_OK;
}

static ob_status canonical(struct build *b, const struct tensor *t, uint32_t layer,
                           struct weight *w, ob_error *error) {
    bool hf = source_kind(b->source) == SOURCE_HF;
    enum from_hf how = hf ? t->from_hf : AS_IS;
    if (how == PERMUTE_Q || how == PERMUTE_K) {
        uint32_t heads = how == PERMUTE_Q ? b->hp->heads[layer] : b->hp->kv_heads[layer];
        if (!t->rows) { /* a bias: its elements are the rows */
            struct weight column = *w;
            ob_status s = to_f32(b, &column, 0, error);
            if (s != OB_OK) return s;
            column.rows = w->cols;
            column.cols = 1;
            column.row_bytes = sizeof(float);
            s = permute(b, &column, heads, error);
            if (s != OB_OK) return s;
            w->quant = column.quant;
            w->data = column.data;
            w->row_bytes = sizeof(float) * w->cols;
            return OB_OK;
        }
        return permute(b, w, heads, error);
    }
    return t->rows ? OB_OK : to_f32(b, w, how == ADD_ONE ? 1.0f : 0.0f, error);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* "{i}" is the layer, "{e}" the expert. */
static void fill_name(const char *pattern, uint32_t layer, uint32_t expert, char *out,
                      size_t size) {
    size_t n = 0;
    for (const char *p = pattern; *p && n + 1 < size;) {
        bool is_layer = strncmp(p, "{i}", 3) == 0, is_expert = strncmp(p, "{e}", 3) == 0;
        if (is_layer || is_expert) {
            n += (size_t)snprintf(out + n, size - n, "%u", is_layer ? layer : expert);
            p += 3;
        } else {
            out[n++] = *p++;
        }
    }
    out[n < size ? n : size - 1] = 0;
}

/* At a tensor whose spelling is known. */
#define REFUSE(b, status, name, error, ...) build_refuse(b, status, name, name, error, __VA_ARGS__)

static ob_status refuse_shape(const struct build *b, const char *name,
                              const struct source_tensor *have, const char *want,
                              ob_error *error) {
    char is[96]; /* 4 numbers of at most 20 digits */
    int n = 0;
    for (uint32_t d = have->ndim < 2 ? 2 : have->ndim; d-- > 0;)
        n += snprintf(is + n, sizeof is - (size_t)n, "%llu%s", (unsigned long long)have->dim[d],
                      d ? ", " : "");
    return REFUSE(b, OB_ERR_FORMAT, name, error, "shape is [%s], the model's keys say [%s]", is,
                  want);
}

/* `depth` > 0: as many matrices in the tensor; 0: one, whose rows may have several dimensions. */
static ob_status check_shape(struct build *b, const struct tensor *t, uint32_t layer,
                             const struct source_tensor *have, uint32_t depth, struct weight *w,
                             ob_error *error) {
    if (!have->quant)
        return REFUSE(b, OB_ERR_UNSUPPORTED, w->name, error,
                      "weights of type %.*s are not supported", STR_ARG(have->type));
    uint64_t rows = t->rows ? product(b->hp, layer, t->rows) : 1;
    uint64_t cols = product(b->hp, layer, t->cols);
    uint64_t outer = have->dim[2] * have->dim[3];
    bool fits = depth ? have->dim[1] == rows && outer == depth : have->dim[1] * outer == rows;
    if (have->dim[0] != cols || !fits) {
        char want[64], stack[16] = "";
        if (depth > 1) snprintf(stack, sizeof stack, "%u, ", depth);
        snprintf(want, sizeof want, "%s%llu, %llu", stack, (unsigned long long)rows,
                 (unsigned long long)cols);
        return refuse_shape(b, w->name, have, want, error);
    }
    w->rows = (uint32_t)rows;
    w->cols = (uint32_t)cols;
    w->quant = have->quant;
    w->data = have->data;
    w->row_bytes = quant_row_bytes(have->quant, cols);
    return OB_OK;
}

/* In layers where one of its dimensions is 0. */
static bool is_nowhere(const struct build *b, const struct tensor *t, uint32_t layer) {
    if (t->from_hf == STACK && b->hp->experts[layer] == 0) return true;
    return product(b->hp, layer, t->cols) == 0 || (t->rows && product(b->hp, layer, t->rows) == 0);
}

struct finder {
    struct build *b;
    bool *used; /* a flag for each tensor of the source */
    uint32_t cap;
};

/* NULL if the source has none of this name. */
static const struct source_tensor *take(struct finder *f, const char *name) {
    const struct source_tensor *have = source_tensor_find(f->b->source, str_of(name));
    if (have) f->used[have - source_tensor_at(f->b->source, 0)] = true;
    return have;
}

static ob_status refuse_missing(const struct build *b, const char *name, ob_error *error) {
    return REFUSE(b, OB_ERR_FORMAT, name, error, "required tensor is missing");
}

/* From the tensor that holds the matrices of the experts, or those of the first one. */
static ob_status find_experts(struct finder *f, const struct tensor *t, uint32_t layer,
                              const struct source_tensor *have, struct weight *w, ob_error *error) {
    struct build *b = f->b;
    uint32_t n = b->hp->experts[layer];
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    const void **expert = arena_array(b->arena, n, sizeof *expert);
    if (!expert) return error_memory(error, w->name, n * sizeof *expert);
    ob_status s = check_shape(b, t, layer, have, gguf ? n : 1, w, error);
    for (uint32_t e = 0; s == OB_OK && e < n; e++) {
        char name[NAME_BYTES];
        if (gguf || e == 0) {
            expert[e] = (const char *)have->data + weight_matrix_bytes(w) * e;
            continue;
        }
        fill_name(t->hf, layer, e, name, sizeof name);
        const struct source_tensor *next = take(f, name);
        if (!next) return refuse_missing(b, name, error);
        struct weight one = {.name = name};
        s = check_shape(b, t, layer, next, 1, &one, error);
        if (s == OB_OK && one.quant != w->quant)
            return REFUSE(b, OB_ERR_UNSUPPORTED, name, error,
                          "is of type %s, that of the first expert %s", one.quant->name,
                          w->quant->name);
        expert[e] = next->data;
    }
    w->experts = n;
    w->expert = expert;
    w->data = NULL;
    return s;
}

static ob_status find_one(struct finder *f, const struct tensor *t, uint32_t layer,
                          ob_error *error) {
    struct build *b = f->b;
    const char *pattern = source_kind(b->source) == SOURCE_GGUF ? t->name : t->hf;
    if (!pattern || is_nowhere(b, t, layer)) return OB_OK;
    char name[NAME_BYTES], spelled[NAME_BYTES];
    fill_name(t->name, layer, 0, name, sizeof name);
    fill_name(pattern, layer, 0, spelled, sizeof spelled);
    const struct source_tensor *have = take(f, spelled);
    if (!have) return t->need == REQUIRED ? refuse_missing(b, spelled, error) : OB_OK;
    if (t->need == UNUSED) {
        char *line = arena_printf(b->arena, "%s: %s", spelled, t->reason);
        if (!line) return error_memory(error, "a name", NAME_BYTES);
        b->model->unused[b->model->unused_count++] = str_of(line);
        return OB_OK;
    }
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    char *canonical_name = arena_copy(b->arena, name, strlen(name));
    if (!w || !canonical_name || b->found_count == f->cap)
        return error_memory(error, "a weight", sizeof *w);
    w->name = canonical_name;
    ob_status s = t->from_hf == STACK ? find_experts(f, t, layer, have, w, error)
                                      : check_shape(b, t, layer, have, 0, w, error);
    if (s == OB_OK && t->from_hf != STACK) s = canonical(b, t, layer, w, error);
    if (s != OB_OK) return s;
    b->found[b->found_count++] = w;
    return OB_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct weight *const *)a)->name, (*(struct weight *const *)b)->name);
}

static struct weight *find_weight(struct build *b, const char *name) {
    size_t low = 0, high = b->found_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, b->found[mid]->name);
        if (order == 0) return b->found[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

struct weight *build_global(struct build *b, const char *name) {
    return find_weight(b, name);
}

struct weight *build_weight(struct build *b, const char *name) {
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "blk.%u.%s", b->layer, name);
    return find_weight(b, full);
}

ob_status load_tensors(struct build *b, ob_error *error) {
    size_t count = source_tensor_count(b->source);
    struct finder f = {.b = b, .cap = (uint32_t)count};
    f.used = arena_array(b->arena, count + 1, sizeof *f.used);
    b->found = arena_array(b->arena, count + 1, sizeof(struct weight *));
    b->model->unused = arena_array(b->arena, count + 1, sizeof(struct str));
    if (!f.used || !b->found || !b->model->unused) return error_memory(error, "tensors", count);

    for (const struct tensor *const *table = b->recipe->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++) {
            uint32_t layers = strstr(t->name, "{i}") ? b->hp->layers : 1;
            for (uint32_t i = 0; i < layers; i++) {
                ob_status s = find_one(&f, t, i, error);
                if (s != OB_OK) return s;
            }
        }
    for (size_t i = 0; i < count; i++)
        if (!f.used[i]) {
            char name[NAME_BYTES];
            snprintf(name, sizeof name, "%.*s", STR_ARG(source_tensor_at(b->source, i)->name));
            return REFUSE(b, OB_ERR_UNSUPPORTED, name, error,
                          "the %s recipe does not know this tensor", b->recipe->family);
        }
    if (b->found_count) qsort(b->found, b->found_count, sizeof *b->found, by_name);
    return OB_OK;
}
