/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c: from a recipe's tensors[] to canonical weights: each row is looked up in the source's
 * spelling, its shape compared with the formula, and brought into the canonical form
 * (transform.h). Vectors always become F32. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "models/formula.h"
#include "models/blocks/pooling.h"
#include "models/blocks/rope.h"
#include "models/load.h"
#include "models/ternary.h"
#include "models/transform.h"

enum { NAME_BYTES = 256, PARTS_MAX = 8 /* of one tensor of a file */ };

/* ---- names ----------------------------------------------------------------------------------- */

/* "{i}" is the layer, "{e}" the expert, "{m}" the root; the pattern ends at '|'. */
static void fill_name(const struct build *b, const char *pattern, uint32_t layer, uint32_t expert,
                      char *out, size_t size) {
    size_t n = 0;
    for (const char *p = pattern; *p && *p != '|' && n + 1 < size;) {
        bool is_layer = strncmp(p, "{i}", 3) == 0, is_expert = strncmp(p, "{e}", 3) == 0;
        if (is_layer || is_expert) {
            n += (size_t)snprintf(out + n, size - n, "%u", is_layer ? layer : expert);
            p += 3;
        } else if (strncmp(p, "{s}", 3) == 0 || strncmp(p, "{h}", 3) == 0) {
            const uint32_t *of = p[1] == 's' ? b->hp->shared_from : b->hp->shared_use;
            n += (size_t)snprintf(out + n, size - n, "%u", of ? of[layer] - (p[1] == 'h') : 0);
            p += 3;
        } else if (strncmp(p, "{m}", 3) == 0) {
            n += (size_t)snprintf(out + n, size - n, "%.*s", STR_ARG(b->root));
            p += 3;
        } else {
            out[n++] = *p++;
        }
    }
    out[n < size ? n : size - 1] = 0;
}

/* The next of '|'-separated patterns, NULL after the last. */
static const char *next_pattern(const char *pattern) {
    const char *bar = strchr(pattern, '|');
    return bar ? bar + 1 : NULL;
}

/* At a tensor whose spelling is known. */
#define REFUSE(b, status, name, error, ...) build_refuse(b, status, name, name, error, __VA_ARGS__)

/* ---- shapes ---------------------------------------------------------------------------------- */

static uint64_t size_of(const struct build *b, uint32_t layer, const char *formula) {
    return formula_value(b->hp, layer, str_of(formula));
}

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

/* `depth` matrices of so many rows, one after the other or along a dimension of their own. */
static bool is_stack(const struct source_tensor *have, uint64_t rows, uint64_t depth) {
    uint64_t outer = have->dim[2] * have->dim[3];
    return outer == 1 ? have->dim[1] == rows * depth : have->dim[1] == rows && outer == depth;
}

/* The tensor against its formula. `depth` > 0: as many matrices in it; 0: one, whose rows may have
 * several dimensions. Sets rows, cols, quant and the file's data; a vector is a column. */
static ob_status check_shape(struct build *b, const struct tensor *t, const struct transform *how,
                             uint32_t layer, const struct source_tensor *have, uint32_t depth,
                             struct weight *w, ob_error *error) {
    if (!have->quant)
        return REFUSE(b, OB_ERR_UNSUPPORTED, w->name, error,
                      "weights of type %.*s are not supported", STR_ARG(have->type));
    uint64_t cols = size_of(b, layer, t->cols), rows = t->rows ? size_of(b, layer, t->rows) : cols;
    uint64_t in_file = transform_file_rows(how, rows), outer = have->dim[2] * have->dim[3];
    bool fits, whole = rows <= FORMULA_LARGE && cols <= FORMULA_LARGE;
    if (!t->rows)
        fits = depth ? have->dim[0] == in_file && have->dim[1] * outer == depth
                     : have->dim[0] * have->dim[1] * outer == in_file;
    else if (how->transposed)
        fits = have->dim[0] == in_file && is_stack(have, cols, depth ? depth : 1);
    else
        fits = have->dim[0] == cols &&
               (depth ? is_stack(have, in_file, depth) : have->dim[1] * outer == in_file);
    if (!fits || !whole || (how->outer && rows % how->outer)) {
        char want[64], stack[16] = "";
        uint64_t first = !t->rows ? 1 : how->transposed ? cols : in_file;
        uint64_t second = t->rows && !how->transposed ? cols : in_file;
        if (depth > 1) snprintf(stack, sizeof stack, "%u, ", depth);
        snprintf(want, sizeof want, "%s%llu, %llu", stack, (unsigned long long)first,
                 (unsigned long long)second);
        return refuse_shape(b, w->name, have, want, error);
    }
    w->rows = (uint32_t)rows;
    w->cols = t->rows ? (uint32_t)cols : 1;
    w->quant = have->quant;
    w->data = have->data;
    w->row_bytes = quant_row_bytes(have->quant, w->cols);
    return OB_OK;
}

bool tensor_stays_float(const struct tensor *t, const char *name) {
    static const char *const small[] = {"gate_inp", ".router_", "_fn.weight" /* of streams */,
                                        "position_embd", "token_types", "ssm_conv1d"};
    static const char *const steps[] = {"f32", "-exp", "below"};
    if (!t->rows) return true;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        if (strstr(name, small[i])) return true;
    for (size_t i = 0; t->from_hf && i < sizeof steps / sizeof steps[0]; i++)
        if (strstr(t->from_hf, steps[i])) return true;
    return false;
}

/* In layers where one of its dimensions is 0. */
bool tensor_is_nowhere(const struct build *b, const struct tensor *t, const struct transform *how,
                       uint32_t layer) {
    if ((how->stack || how->experts) && !how->parts && b->hp->experts[layer] == 0) return true;
    return size_of(b, layer, t->cols) == 0 || (t->rows && size_of(b, layer, t->rows) == 0);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct finder {
    struct build *b;
    bool *used; /* a flag for each tensor of the source */
    bool ternary; /* matrices may be */
    uint32_t cap;
    const struct packing *packing; /* NULL: nothing is packed */
};

/* A tensor of the source, or what stands for a packed one. */
struct piece {
    const struct source_tensor *tensor; /* NULL: there is none of this name */
    struct packed *packed;
};

/* NULL if the source has none of this name. */
static const struct source_tensor *take(struct finder *f, const char *name) {
    const struct source_tensor *have = source_tensor_find(f->b->source, str_of(name));
    if (have) f->used[have - source_tensor_at(f->b->source, 0)] = true;
    return have;
}

/* The same for a matrix, which may be packed. */
static ob_status take_piece(struct finder *f, const struct tensor *t, const char *name,
                            struct piece *out, ob_error *error) {
    *out = (struct piece){0};
    if (f->packing && t->rows && t->need != UNUSED) {
        ob_status s = packed_find(f->b, f->packing, f->used, name, &out->packed, error);
        if (s != OB_OK) return s;
    }
    out->tensor = out->packed ? &out->packed->as : take(f, name);
    return OB_OK;
}

/* Rows of it, for transform_run; NULL: it has data. */
static const struct packed_rows *rows_of(const struct piece *piece, uint32_t first,
                                         struct packed_rows *out) {
    *out = (struct packed_rows){piece->packed, first};
    return piece->packed ? out : NULL;
}

static ob_status refuse_missing(const struct build *b, const char *name, ob_error *error) {
    return REFUSE(b, OB_ERR_FORMAT, name, error, "required tensor is missing");
}

/* A vector lies in one row. */
static void lay_down(const struct tensor *t, struct weight *w) {
    if (t->rows) return;
    w->cols = w->rows;
    w->rows = 1;
    w->row_bytes = sizeof(float) * w->cols;
}

/* The tensor of each expert, of which the first is there; packed ones get one format. */
static ob_status take_experts(struct finder *f, const struct tensor *t, const char *pattern,
                              uint32_t layer, uint32_t n, struct piece *piece, ob_error *error) {
    for (uint32_t e = 1; e < n; e++) {
        char name[NAME_BYTES];
        fill_name(f->b, pattern, layer, e, name, sizeof name);
        ob_status s = take_piece(f, t, name, &piece[e], error);
        if (s != OB_OK) return s;
        if (!piece[e].tensor) return refuse_missing(f->b, name, error);
        if (piece[e].packed && piece[0].packed)
            piece[0].packed->as.quant =
                packed_wider(piece[0].packed->as.quant, piece[e].packed->as.quant);
    }
    for (uint32_t e = 1; e < n && piece[0].packed; e++)
        if (piece[e].packed) piece[e].packed->as.quant = piece[0].packed->as.quant;
    return OB_OK;
}

/* From the tensor that holds the matrices of the experts, or those of the first one. */
static ob_status find_experts(struct finder *f, const struct tensor *t, const struct transform *how,
                              const char *pattern, uint32_t layer, const struct piece *first,
                              struct weight *w, ob_error *error) {
    struct build *b = f->b;
    uint32_t n = how->parts ? how->parts : b->hp->experts[layer];
    const struct source_tensor *have = first->tensor;
    const void **expert = arena_array(b->arena, n, sizeof *expert);
    struct piece *piece = arena_array(b->arena, n, sizeof *piece);
    if (!expert || !piece) return error_memory(error, w->name, n * sizeof *piece);
    piece[0] = *first;
    if (!how->experts) {
        ob_status s = take_experts(f, t, pattern, layer, n, piece, error);
        if (s != OB_OK) return s;
    }
    for (uint32_t e = 0; e < n; e++) {
        char name[NAME_BYTES];
        fill_name(b, pattern, layer, e, name, sizeof name);
        const struct piece *at = &piece[how->experts ? 0 : e];
        const struct source_tensor *from = at->tensor;
        struct packed_rows rows;
        struct weight one = {.name = name};
        ob_status s = check_shape(b, t, how, layer, from, how->experts ? n : 1, &one, error);
        if (s != OB_OK) return s;
        if (how->experts)
            one.data = (const char *)have->data + have->bytes / n * e;
        if (e > 0 && from->quant != have->quant)
            return REFUSE(b, OB_ERR_UNSUPPORTED, name, error,
                          "is of type %s, that of the first expert %s", from->quant->name,
                          have->quant->name);
        s = transform_run(b, how, rows_of(at, 0, &rows), &one, !t->rows, error);
        if (s != OB_OK) return s;
        expert[e] = one.data;
        if (e > 0) continue;
        const char *canonical = w->name;
        *w = one;
        w->name = canonical;
    }
    w->experts = n;
    w->heads = how->parts > 0;
    w->expert = expert;
    w->data = NULL;
    lay_down(t, w);
    return OB_OK;
}

/* A vector whose parts are tensors of their own, the first of which is `have`. */
static ob_status find_parts(struct finder *f, const struct tensor *t, const struct transform *how,
                            const char *pattern, uint32_t layer, const struct source_tensor *have,
                            struct weight *w, ob_error *error) {
    struct build *b = f->b;
    uint64_t n = size_of(b, layer, t->cols);
    if (n > FORMULA_LARGE || n % how->join)
        return REFUSE(b, OB_ERR_FORMAT, w->name, error,
                      "its size by the model's keys is too large or no multiple of its parts");
    float *out = arena_array(b->arena, n, sizeof *out);
    if (!out) return error_memory(error, w->name, n * sizeof *out);
    for (uint32_t e = 0; e < how->join; e++) {
        char name[NAME_BYTES];
        fill_name(b, pattern, layer, e, name, sizeof name);
        const struct source_tensor *from = e == 0 ? have : take(f, name);
        if (!from) return refuse_missing(b, name, error);
        if (!from->quant || from->quant->block > 1 || from->ndim > 1 ||
            from->dim[0] != n / how->join)
            return REFUSE(b, OB_ERR_FORMAT, name, error, "must be %llu numbers",
                          (unsigned long long)(n / how->join));
        from->quant->decode(from->data, out + n / how->join * e, n / how->join);
    }
    *w = (struct weight){.name = w->name,
                         .quant = quant_list[QUANT_f32],
                         .rows = 1,
                         .cols = (uint32_t)n,
                         .row_bytes = sizeof *out * n,
                         .data = out};
    return OB_OK;
}

/* A table of numbers that index something. */
static ob_status find_numbers(struct build *b, const struct tensor *t, const struct transform *how,
                              uint32_t layer, const struct source_tensor *have, struct weight *w,
                              ob_error *error) {
    uint64_t rows = size_of(b, layer, t->rows), cols = size_of(b, layer, t->cols);
    if (!str_is(have->type, "I32") && !str_is(have->type, "I64") && !str_is(have->type, "F32"))
        return REFUSE(b, OB_ERR_UNSUPPORTED, w->name, error, "type %.*s, must be I32, I64 or F32",
                      STR_ARG(have->type));
    if (have->ndim > 2 || have->dim[0] != cols || have->dim[1] != rows) {
        char want[64];
        snprintf(want, sizeof want, "%llu, %llu", (unsigned long long)rows,
                 (unsigned long long)cols);
        return refuse_shape(b, w->name, have, want, error);
    }
    w->rows = (uint32_t)rows;
    w->cols = (uint32_t)cols;
    w->data = have->data;
    return transform_numbers(b, how, have->type, w, error);
}

/* From the tensor that holds rows of all heads. */
static ob_status find_heads(struct build *b, const struct tensor *t, const struct transform *how,
                            uint32_t layer, const struct piece *piece, struct weight *w,
                            ob_error *error) {
    const struct source_tensor *have = piece->tensor;
    uint64_t rows = size_of(b, layer, t->rows), cols = size_of(b, layer, t->cols);
    uint64_t file_cols = how->transposed ? rows : cols, n = how->each_count ? how->each_count
                                                                          : b->hp->heads[layer];
    if (!have->quant)
        return REFUSE(b, OB_ERR_UNSUPPORTED, w->name, error,
                      "weights of type %.*s are not supported", STR_ARG(have->type));
    const uint64_t *dim = have->dim; /* a row may have two dimensions, or the heads of rows */
    bool fits = (dim[0] == file_cols && dim[1] * dim[2] * dim[3] == n * how->each) ||
                (dim[0] * dim[1] == file_cols && dim[2] * dim[3] == n * how->each);
    if (rows > FORMULA_LARGE || cols > FORMULA_LARGE || !fits) {
        char want[64];
        const uint64_t in_file = n * how->each;
        snprintf(want, sizeof want, "%llu, %llu", (unsigned long long)in_file,
                 (unsigned long long)file_cols);
        return refuse_shape(b, w->name, have, want, error);
    }
    const void **head = arena_array(b->arena, n, sizeof *head);
    if (!head) return error_memory(error, w->name, n * sizeof *head);
    size_t file_row = quant_row_bytes(have->quant, (uint32_t)file_cols);
    struct weight one = {.name = w->name};
    for (uint32_t h = 0; h < n; h++) {
        one.rows = (uint32_t)rows;
        one.cols = (uint32_t)cols;
        one.quant = have->quant;
        one.row_bytes = quant_row_bytes(one.quant, one.cols);
        uint32_t first = h * how->each + how->each_start;
        struct packed_rows packed;
        if (!piece->packed) one.data = (const char *)have->data + first * file_row;
        ob_status s = transform_run(b, how, rows_of(piece, first, &packed), &one, false, error);
        if (s != OB_OK) return s;
        head[h] = one.data;
    }
    *w = one;
    w->data = NULL;
    w->experts = (uint32_t)n;
    w->expert = head;
    w->heads = true;
    return OB_OK;
}

/* The bytes of MXFP4 matrices and, by the name that ends otherwise, of their scales. */
static ob_status find_mxfp4(struct finder *f, const struct tensor *t, const struct transform *how,
                            const char *spelled, uint32_t layer, const struct source_tensor *have,
                            struct weight *w, ob_error *error) {
    struct build *b = f->b;
    uint32_t n = b->hp->experts[layer];
    uint64_t rows = size_of(b, layer, t->rows), cols = size_of(b, layer, t->cols);
    uint64_t in_file = transform_file_rows(how, rows), blocks = cols / 32;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s_scales", (int)(strlen(spelled) - strlen("_blocks")), spelled);
    const struct source_tensor *scales = take(f, name);
    if (!scales) return refuse_missing(b, name, error);
    if (cols % 32 || rows > FORMULA_LARGE || cols > FORMULA_LARGE || have->ndim != 4 ||
        have->dim[0] != 16 || have->dim[1] != blocks || have->dim[2] != in_file ||
        have->dim[3] != n || have->bytes != 16 * scales->bytes || scales->ndim != 3 ||
        scales->bytes != blocks * in_file * n)
        return REFUSE(b, OB_ERR_FORMAT, w->name, error,
                      "is not [%u, %llu, %llu, 16] bytes with as many scales", n,
                      (unsigned long long)in_file, (unsigned long long)blocks);
    const void **expert = arena_array(b->arena, n, sizeof *expert);
    if (!expert) return error_memory(error, w->name, n * sizeof *expert);
    w->rows = (uint32_t)rows;
    w->cols = (uint32_t)cols;
    for (uint32_t e = 0; e < n; e++) {
        size_t at = scales->bytes / n * e;
        ob_status s = transform_mxfp4(b, how, (const uint8_t *)have->data + 16 * at,
                                      (const uint8_t *)scales->data + at, w, error);
        if (s != OB_OK) return s;
        expert[e] = w->data;
    }
    w->experts = n;
    w->expert = expert;
    w->data = NULL;
    return OB_OK;
}

/* A tensor of one matrix or vector, which may be ternary. */
static ob_status find_one(struct finder *f, const struct tensor *t, const struct transform *how,
                          const char *spelled, uint32_t layer, const struct piece *piece,
                          struct weight *w, ob_error *error) {
    struct build *b = f->b;
    const struct source_tensor *have = piece->tensor;
    struct packed_rows rows;
    struct source_tensor unpacked;
    struct transform exact = *how;
    char name[NAME_BYTES], bias[NAME_BYTES];
    const char *canonical = w->name;
    bool may = f->ternary && t->rows && ternary_scale_name(b, spelled, name, sizeof name);
    const struct source_tensor *scale = may ? take(f, name) : NULL;
    ob_status s = OB_OK;
    if (scale) {
        snprintf(bias, sizeof bias, "%.*sbias", (int)(strlen(spelled) - strlen("weight")), spelled);
        if (source_tensor_find(b->source, str_of(bias)))
            return REFUSE(b, OB_ERR_UNSUPPORTED, bias, error, "ternary weights with a bias");
        s = ternary_read(b, have, scale, &unpacked, &w->ternary, error);
        have = &unpacked;
        exact.to = NULL; /* no format of blocks holds -1, 0 and 1 exactly */
    }
    w->name = spelled; /* for messages */
    if (s == OB_OK) s = check_shape(b, t, &exact, layer, have, 0, w, error);
    if (s == OB_OK)
        s = transform_run(b, &exact, scale ? NULL : rows_of(piece, 0, &rows), w, !t->rows, error);
    if (s == OB_OK) lay_down(t, w);
    w->name = canonical;
    return s;
}

/* A tensor that is known but not needed, with the reason. */
static ob_status note_unused(struct build *b, struct str name, const char *reason,
                             ob_error *error) {
    char *line = arena_printf(b->arena, "%.*s: %s", STR_ARG(name), reason);
    if (!line) return error_memory(error, "a name", NAME_BYTES);
    b->model->unused[b->model->unused_count++] = str_of(line);
    return OB_OK;
}

/* All whose name begins so. */
static ob_status skip_prefix(struct finder *f, const char *prefix, const char *reason,
                             ob_error *error) {
    const struct source *source = f->b->source;
    for (size_t i = 0; i < source_tensor_count(source); i++) {
        struct str name = source_tensor_at(source, i)->name;
        if (f->used[i] || !str_starts(name, prefix)) continue;
        f->used[i] = true;
        ob_status s = note_unused(f->b, name, reason, error);
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

/* One of the row's spellings, if the source has it. */
static ob_status find_spelled(struct finder *f, const struct tensor *t, const struct transform *how,
                              const char *pattern, uint32_t layer, bool *found, ob_error *error) {
    struct build *b = f->b;
    char name[NAME_BYTES], spelled[NAME_BYTES];
    fill_name(b, t->name, layer, 0, name, sizeof name);
    fill_name(b, pattern, layer, 0, spelled, sizeof spelled);
    size_t n = strlen(spelled);
    if (t->need == UNUSED && n > 0 && spelled[n - 1] == '*') {
        spelled[n - 1] = 0;
        return skip_prefix(f, spelled, t->reason, error);
    }
    struct piece piece;
    ob_status s = take_piece(f, t, spelled, &piece, error);
    const struct source_tensor *have = piece.tensor;
    if (s != OB_OK || !have) return s;
    *found = true;
    if (t->need == UNUSED) return note_unused(b, have->name, t->reason, error);
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    char *canonical_name = arena_copy(b->arena, name, strlen(name));
    if (!w || !canonical_name || b->found_count == f->cap)
        return error_memory(error, "a weight", sizeof *w);
    w->name = canonical_name;
    struct transform converted = *how;
    if (!tensor_stays_float(t, name)) converted.to = b->options.weights;
    how = &converted;
    if (how->mxfp4) {
        s = find_mxfp4(f, t, how, spelled, layer, have, w, error);
    } else if (how->stack || how->experts) {
        s = find_experts(f, t, how, pattern, layer, &piece, w, error);
    } else if (how->join) {
        s = find_parts(f, t, how, pattern, layer, have, w, error);
    } else if (how->each || how->below) {
        w->name = spelled; /* for messages */
        s = how->each ? find_heads(b, t, how, layer, &piece, w, error)
                      : find_numbers(b, t, how, layer, have, w, error);
        w->name = canonical_name;
    } else {
        s = find_one(f, t, how, spelled, layer, &piece, w, error);
    }
    if (s == OB_OK) b->found[b->found_count++] = w;
    return s;
}

/* The spellings of a row in this source; NULL if it has none. */
static const char *patterns_of(const struct build *b, const struct tensor *t) {
    if (source_kind(b->source) == SOURCE_HF) return t->hf;
    return t->gguf ? t->gguf : t->name;
}

static bool is_norm(const char *name) {
    static const char end[] = "_norm.weight";
    size_t n = strlen(name);
    return n >= sizeof end - 1 && strcmp(name + n - (sizeof end - 1), end) == 0;
}

static bool parse(const struct build *b, const struct tensor *t, uint32_t layer,
                  struct transform *how) {
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    if (!transform_parse(b, layer, gguf ? t->from_gguf : t->from_hf, how)) return false;
    struct transform hf;
    /* In GGUF the experts of a tensor are one, whatever Hugging Face has; heads are. */
    if (gguf && transform_parse(b, layer, t->from_hf, &hf)) {
        if (hf.stack || hf.experts || hf.mxfp4) how->experts = true;
        if (hf.below) how->below = hf.below;
        how->parts = hf.parts;
        if (hf.each && !t->from_gguf) {
            how->each = (uint32_t)size_of(b, layer, t->rows);
            how->each_count = hf.each_count;
        }
    }
    if (!gguf && !t->from_hf && b->recipe->norms_plus_one && is_norm(t->name))
        how->element = ADD_ONE;
    return true;
}

/* A file of our own converter has what llama.cpp has no form for in the canonical one. */
static bool parse_plain(const struct build *b, const struct tensor *t, uint32_t layer,
                        struct transform *how) {
    struct transform hf;
    *how = (struct transform){0};
    if (!transform_parse(b, layer, t->from_hf, &hf)) return false;
    how->experts = hf.stack || hf.experts || hf.mxfp4;
    how->below = hf.below;
    how->parts = hf.parts;
    how->each = hf.each ? (uint32_t)size_of(b, layer, t->rows) : 0;
    how->each_count = hf.each_count;
    return true;
}

/* Has the recipe an earlier row of this name? Most have none: found ones are not looked through. */
static bool has_twin(const struct recipe *recipe, const struct tensor *row) {
    for (const struct tensor *const *table = recipe->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++) {
            if (t == row) return false;
            if (strcmp(t->name, row->name) == 0) return true;
        }
    return false;
}

/* An earlier row of this name was. */
static bool was_found(const struct build *b, const struct tensor *t, uint32_t layer) {
    char name[NAME_BYTES];
    if (!has_twin(b->recipe, t)) return false;
    fill_name(b, t->name, layer, 0, name, sizeof name);
    for (uint32_t i = b->found_count; i-- > 0;)
        if (strcmp(b->found[i]->name, name) == 0) return true;
    return false;
}

/* A vector of one number, from a list of one a layer, or one for all. */
static ob_status find_in_key(struct finder *f, const struct tensor *t, uint32_t layer,
                             ob_error *error) {
    struct build *b = f->b;
    char name[NAME_BYTES];
    fill_name(b, t->name, layer, 0, name, sizeof name);
    struct weight *w = arena_alloc(b->arena, sizeof *w);
    char *kept = arena_copy(b->arena, name, strlen(name));
    float *value = arena_alloc(b->arena, sizeof *value);
    uint64_t n = source_count(b->source, t->gguf_key);
    double number;
    if (!w || !kept || !value || b->found_count == f->cap)
        return error_memory(error, "a weight", sizeof *w);
    if ((n != 1 && n != b->hp->layers) ||
        !source_f64(b->source, t->gguf_key, n == 1 ? 0 : layer, &number))
        return REFUSE(b, OB_ERR_FORMAT, t->gguf_key, error, "must be %u numbers", b->hp->layers);
    *value = (float)number;
    *w = (struct weight){.name = kept,
                         .quant = quant_list[QUANT_f32],
                         .rows = 1,
                         .cols = 1,
                         .row_bytes = sizeof *value,
                         .data = value};
    b->found[b->found_count++] = w;
    return OB_OK;
}

static ob_status find_row(struct finder *f, const struct tensor *t, uint32_t layer,
                          ob_error *error) {
    struct build *b = f->b;
    if (t->gguf_key && source_kind(b->source) == SOURCE_GGUF)
        return find_in_key(f, t, layer, error);
    struct transform how;
    bool found = false, own = source_meta(b->source) != b->source;
    ob_status s = OB_OK;
    if (t->need != UNUSED && was_found(b, t, layer)) return OB_OK;
    if (t->need == UNUSED && !t->cols) how = (struct transform){0};
    else if (!parse(b, t, layer, &how))
        return REFUSE(b, OB_ERR_FORMAT, t->name, error,
                      "its size by the model's keys is too large");
    else if (tensor_is_nowhere(b, t, &how, layer)) return OB_OK;
    for (const char *p = patterns_of(b, t); p && !found && s == OB_OK; p = next_pattern(p))
        s = find_spelled(f, t, &how, p, layer, &found, error);
    if (s == OB_OK && !found && own && t->need != UNUSED && t->hf && parse_plain(b, t, layer, &how))
        s = find_spelled(f, t, &how, t->name, layer, &found, error);
    return s;
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

/* In this layer, by the row or by its formula. */
static bool is_required(const struct build *b, const struct tensor *t, uint32_t layer) {
    if (t->need != OPTIONAL || !t->needed) return t->need == REQUIRED;
    return size_of(b, layer, t->needed) > 0;
}

/* Once all were looked for: a row that is required was found, or another of its name. */
static ob_status is_there(struct finder *f, const struct tensor *t, uint32_t layer,
                          ob_error *error) {
    struct build *b = f->b;
    struct transform how;
    char name[NAME_BYTES], spelled[NAME_BYTES];
    const char *pattern = patterns_of(b, t);
    if (!pattern || !*pattern || !is_required(b, t, layer)) return OB_OK;
    if (!parse(b, t, layer, &how) || tensor_is_nowhere(b, t, &how, layer)) return OB_OK;
    fill_name(b, t->name, layer, 0, name, sizeof name);
    fill_name(b, pattern, layer, 0, spelled, sizeof spelled);
    return find_weight(b, name) ? OB_OK : refuse_missing(b, spelled, error);
}

const struct tensor *recipe_table(const struct recipe *recipe, size_t n) {
    size_t own = 0;
    while (recipe->tensors[own]) own++;
    if (n < own) return recipe->tensors[n];
    return n == own ? pooling_tensors : n == own + 1 ? rope_tensors : NULL;
}

typedef ob_status row_fn(struct finder *f, const struct tensor *t, uint32_t layer,
                         ob_error *error);
static ob_status each_row(struct finder *f, row_fn *fn, ob_error *error) {
    const struct tensor *t;
    for (size_t n = 0; (t = recipe_table(f->b->recipe, n)); n++) {
        if (t == rope_tensors && !f->b->hp->rope.freq) continue;
        for (; t->name; t++) {
            uint32_t layers = strstr(t->name, "{i}") ? f->b->hp->layers : 1;
            for (uint32_t i = 0; i < layers; i++) {
                ob_status s = fn(f, t, i, error);
                if (s != OB_OK) return s;
            }
        }
    }
    return OB_OK;
}

static const char *const model_roots =
    "model.|model.language_model.|language_model.model.|model.text_model.|language_model.|";

/* The first root under which the embedding's tensor is; its rows are the vocabulary, for which no
 * key is needed. */
static const struct source_tensor *find_embedding(struct build *b, const struct tensor *t) {
    const char *roots = b->recipe->roots ? b->recipe->roots : model_roots;
    for (const char *p = patterns_of(b, t); p; p = next_pattern(p))
        for (const char *r = roots; r; r = next_pattern(r)) {
            char name[NAME_BYTES];
            b->root = (struct str){r, strcspn(r, "|")};
            fill_name(b, p, 0, 0, name, sizeof name);
            const struct source_tensor *have = source_tensor_find(b->source, str_of(name));
            if (have) return have;
        }
    b->root = (struct str){roots, strcspn(roots, "|")};
    return NULL;
}

/* Some embed further tokens, which they do not count, of images. */
static ob_status check_vocab(struct build *b, ob_error *error) {
    uint64_t says;
    bool more = false;
    for (uint32_t i = 0; i < b->hp->numbers; i++)
        more |= strcmp(b->hp->number[i].name, "written") == 0;
    if (source_kind(b->meta) == SOURCE_GGUF || !build_u64_at(b, NULL, "vocab_size", 0, &says) ||
        says == b->hp->vocab || (more && says < b->hp->vocab))
        return OB_OK;
    return build_refuse(b, OB_ERR_FORMAT, NULL, "vocab_size", error,
                        "%llu tokens, the embedding has %u", (unsigned long long)says,
                        b->hp->vocab);
}

ob_status load_vocab(struct build *b, ob_error *error) {
    const struct tensor *first = NULL;
    for (const struct tensor *const *table = b->recipe->tensors; *table; table++)
        for (const struct tensor *t = *table; t->name; t++) {
            if (strcmp(t->name, "token_embd.weight") != 0 || !patterns_of(b, t)) continue;
            const struct source_tensor *have = find_embedding(b, t);
            if (!first) first = t;
            if (!have) continue;
            if (have->ndim == 2 && have->dim[1] <= 1 << 24) {
                b->hp->vocab = (uint32_t)have->dim[1];
                return check_vocab(b, error);
            }
            error_set(error, OB_ERR_FORMAT, "is no matrix of at most 16777216 rows");
            error_at(error, source_path(b->source), t->name, OB_NO_OFFSET);
            return OB_ERR_FORMAT;
        }
    char name[NAME_BYTES];
    assert(first); /* every family embeds */
    fill_name(b, patterns_of(b, first), 0, 0, name, sizeof name);
    return refuse_missing(b, name, error);
}

/* What else is in a model that also sees or hears. */
static ob_status skip_towers(struct finder *f, ob_error *error) {
    static const char *const prefix[] = {
        "model.audio_tower.", "model.connector.", "model.embed_audio.", "model.embed_vision.",
        "model.multi_modal_projector.", "model.vision_embed_tokens.", "model.vision_embedder.",
        "model.vision_model.", "model.vision_tower.", "model.visual.", "model.vqmodel.",
        "multi_modal_projector.", "vision_embed_tokens.", "vision_model.", "vision_tower.",
        "visual.", "vqmodel.",
    };
    ob_status s = OB_OK;
    struct str inside = source_text_type(f->b->source);
    if (inside.n == 0 || str_eq(inside, source_architecture(f->b->source))) return s;
    for (size_t i = 0; s == OB_OK && i < sizeof prefix / sizeof prefix[0]; i++)
        s = skip_prefix(f, prefix[i], "not needed for text", error);
    return s;
}

/* Layers that predict further tokens, in either spelling. */
static ob_status skip_predictors(struct finder *f, ob_error *error) {
    static const char reason[] = "predicts further tokens";
    struct build *b = f->b;
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    ob_status s = OB_OK;
    for (uint32_t i = 0; s == OB_OK && i < b->hp->predictors; i++) {
        char prefix[NAME_BYTES];
        fill_name(b, gguf ? "blk.{i}." : "{m}layers.{i}.", b->hp->layers + i, 0, prefix,
                  sizeof prefix);
        s = skip_prefix(f, prefix, reason, error);
    }
    if (s == OB_OK && !gguf && b->hp->predictors) s = skip_prefix(f, "mtp.", reason, error);
    return s;
}

/* Quantizers write a bias of zeros where the model has none. */
static bool is_zero_bias(const struct finder *f, const struct source_tensor *t) {
    static const char end[] = ".bias";
    size_t n = sizeof end - 1, i = 0;
    if (!f->packing || t->name.n < n || memcmp(t->name.p + t->name.n - n, end, n) != 0)
        return false;
    while (i < t->bytes && ((const char *)t->data)[i] == 0) i++;
    return i == t->bytes;
}

ob_status load_tensors(struct build *b, ob_error *error) {
    size_t count = source_tensor_count(b->source);
    struct finder f = {.b = b, .cap = (uint32_t)count * PARTS_MAX};
    f.used = arena_array(b->arena, count + 1, sizeof *f.used);
    b->found = arena_array(b->arena, (size_t)f.cap + 1, sizeof(struct weight *));
    b->model->unused = arena_array(b->arena, count + 1, sizeof(struct str));
    if (!f.used || !b->found || !b->model->unused) return error_memory(error, "tensors", count);

    ob_status s = ternary_check(b, &f.ternary, error);
    if (s == OB_OK) s = packing_open(b, &f.packing, error);
    if (s != OB_OK) return s;
    b->model->packing = packing_describe(f.packing);
    if ((s = each_row(&f, find_row, error)) != OB_OK) return s;
    if (b->found_count) qsort(b->found, b->found_count, sizeof *b->found, by_name);
    if ((s = each_row(&f, is_there, error)) != OB_OK) return s;
    if ((s = skip_towers(&f, error)) != OB_OK) return s;
    if ((s = skip_predictors(&f, error)) != OB_OK) return s;
    for (size_t i = 0; i < count; i++)
        if (!f.used[i] && is_zero_bias(&f, source_tensor_at(b->source, i))) {
            s = note_unused(b, source_tensor_at(b->source, i)->name, "zeros", error);
            if (s != OB_OK) return s;
        } else if (!f.used[i]) {
            char name[NAME_BYTES];
            snprintf(name, sizeof name, "%.*s", STR_ARG(source_tensor_at(b->source, i)->name));
            return REFUSE(b, OB_ERR_UNSUPPORTED, name, error,
                          "the %s recipe does not know this tensor, or by its keys not here",
                          b->recipe->family);
        }
    return OB_OK;
}
