/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c: see safetensors.h. Each file's header is read with the pull reader into one
 * growing list; then the list is sorted by place to find overlaps and by name for the search. */
#include "format/safetensors.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/os.h"
#include "format/json_pull.h"

enum {
    HEADER_MAX = 100000000, /* bytes, as the reference has it */
    INDEX_MAX = 256 << 20,
    DIMS_MAX = 16,
};

struct part {
    struct map map; /* zeroed when the bytes are borrowed */
    const uint8_t *p;
    size_t size;
    const char *path;
};

struct safetensors {
    struct arena arena;
    struct part *part;
    uint32_t parts;
    struct buf list; /* struct safetensors_tensor x tensors */
    struct safetensors_tensor *tensor;
    size_t tensors;
};

static ob_status fail(ob_error *error, const char *path, struct str where, uint64_t at,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

static ob_status fail(ob_error *error, const char *path, struct str where, uint64_t at,
                      const char *format, ...) {
    char message[256], name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(name, sizeof name, "%.*s", STR_ARG(where));
    error_set(error, OB_ERR_FORMAT, "%s", message);
    error_at(error, path, name, at);
    return OB_ERR_FORMAT;
}

/* ---- one tensor's entry ---------------------------------------------------------------------- */

struct reader {
    struct safetensors *st;
    const struct part *part;
    uint32_t index;
    size_t data_at; /* where the data starts in the file */
    struct json_pull json;
    struct str where; /* the tensor being read */
    ob_error *error;
};

static uint64_t place(const struct reader *r) { return 8 + pull_offset(&r->json); }

static ob_status wrong(const struct reader *r, const char *message) {
    if (r->json.kind != PULL_BAD)
        return fail(r->error, r->part->path, r->where, place(r), "%s", message);
    ob_status status = pull_error(&r->json, r->error);
    if (r->error && r->error->offset != OB_NO_OFFSET) r->error->offset += 8;
    error_at(r->error, r->part->path, NULL, OB_NO_OFFSET);
    return status;
}

/* [whole, numbers]; at most `most` of them. */
static ob_status read_numbers(struct reader *r, uint64_t *out, uint32_t most, uint32_t *n,
                              const char *message) {
    if (pull_next(&r->json) != PULL_ARRAY) return wrong(r, message);
    for (*n = 0; pull_next(&r->json) != PULL_ARRAY_END; (*n)++)
        if (*n == most || !pull_u64(&r->json, &out[*n])) return wrong(r, message);
    return OB_OK;
}

static ob_status read_copy(struct reader *r, struct str text, struct str *out) {
    char *copy = arena_copy(&r->st->arena, text.p, text.n);
    if (!copy) return error_memory(r->error, "a name", text.n);
    *out = (struct str){copy, text.n};
    return OB_OK;
}

/* Bits of a data type, 0 if unknown: then only the offsets can be checked. */
static uint32_t bits_of(struct str dtype) {
    static const struct { const char *name; uint32_t bits; } known[] = {
        {"BOOL", 8}, {"U8", 8}, {"I8", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
        {"U16", 16}, {"I16", 16}, {"F16", 16}, {"BF16", 16}, {"U32", 32}, {"I32", 32}, {"F32", 32},
        {"U64", 64}, {"I64", 64}, {"F64", 64}, {"C64", 64}, {"F4", 4},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(dtype, known[i].name)) return known[i].bits;
    return 0;
}

static const struct quant *quant_of(struct str dtype) {
    static const char *const same[] = {"BF16", "F16", "F32"}; /* spelled alike on both sides */
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (str_is(dtype, same[i])) return quant_named(same[i]);
    return NULL;
}

/* The file's shape (outermost first) to dims; the weight count is checked on the way. */
static ob_status set_shape(struct reader *r, struct safetensors_tensor *t, const uint64_t *shape,
                           uint32_t n, uint64_t *count) {
    *count = 1;
    t->ndim = n == 0 ? 1 : n < 4 ? n : 4;
    for (int i = 0; i < 4; i++) t->dim[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t d = shape[n - 1 - i];
        if (d == 0) return wrong(r, "a dimension is zero");
        if (__builtin_mul_overflow(*count, d, count)) return wrong(r, "the shape overflows");
        t->dim[i < 4 ? i : 3] *= d;
    }
    return OB_OK;
}

static ob_status set_data(struct reader *r, struct safetensors_tensor *t, const uint64_t *offset,
                          uint64_t count) {
    const struct part *part = r->part;
    uint64_t room = part->size - r->data_at, bits = bits_of(t->dtype), want;
    if (offset[0] > offset[1]) return wrong(r, "the data ends before it starts");
    if (offset[1] > room)
        return fail(
            r->error, part->path, r->where, place(r),
            "data up to byte %llu runs past the end of the file, which has %llu bytes of data",
            (unsigned long long)offset[1], (unsigned long long)room);
    t->bytes = (size_t)(offset[1] - offset[0]);
    if (bits && (__builtin_mul_overflow(count, bits, &want) || want != (uint64_t)t->bytes * 8))
        return fail(r->error, part->path, r->where, place(r),
                    "%zu bytes, but its shape and type %.*s want %llu weights of %llu bits",
                    t->bytes, STR_ARG(t->dtype), (unsigned long long)count,
                    (unsigned long long)bits);
    t->offset = r->data_at + offset[0];
    t->data = part->p + t->offset;
    return OB_OK;
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} after its name. */
static ob_status read_tensor(struct reader *r, struct str name) {
    struct safetensors_tensor t = {.part = r->index};
    uint64_t shape[DIMS_MAX], offset[2], count;
    uint32_t dims = 0, offsets = 0;
    bool has_shape = false;
    ob_status status = read_copy(r, name, &t.name);
    if (status != OB_OK) return status;
    r->where = t.name;
    if (t.name.n == 0 || memchr(t.name.p, 0, t.name.n))
        return wrong(r, "a tensor name must be text");
    if (pull_next(&r->json) != PULL_OBJECT) return wrong(r, "a tensor's entry must be an object");
    while (pull_next(&r->json) == PULL_KEY) {
        struct str key = r->json.text;
        if (str_is(key, "dtype") && !t.dtype.p) {
            if (pull_next(&r->json) != PULL_STRING) return wrong(r, "dtype must be a string");
            status = read_copy(r, r->json.text, &t.dtype);
        } else if (str_is(key, "shape") && !has_shape) {
            has_shape = true;
            status = read_numbers(r, shape, DIMS_MAX, &dims, "shape must be a few whole numbers");
        } else if (str_is(key, "data_offsets") && !offsets) {
            status = read_numbers(r, offset, 2, &offsets, "data_offsets must be two whole numbers");
        } else {
            return wrong(r, "a field is unknown or appears twice");
        }
        if (status != OB_OK) return status;
    }
    if (r->json.kind != PULL_OBJECT_END) return wrong(r, "a tensor's entry must be an object");
    if (!t.dtype.p || !has_shape || offsets != 2)
        return wrong(r, "dtype, shape or data_offsets is missing");
    if ((status = set_shape(r, &t, shape, dims, &count)) != OB_OK) return status;
    if ((status = set_data(r, &t, offset, count)) != OB_OK) return status;
    t.quant = quant_of(t.dtype);
    buf_add(&r->st->list, &t, sizeof t);
    return r->st->list.failed ? error_memory(r->error, "tensors", r->st->list.n) : OB_OK;
}

/* ---- one file -------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
    const struct safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static ob_status check_overlaps(const struct part *part, struct safetensors_tensor *t, size_t n,
                                ob_error *error) {
    if (n) qsort(t, n, sizeof *t, by_place);
    for (size_t i = 0; i + 1 < n; i++)
        if (t[i].offset + t[i].bytes > t[i + 1].offset)
            return fail(error, part->path, t[i + 1].name, t[i + 1].offset,
                        "the tensor overlaps tensor '%.*s'", STR_ARG(t[i].name));
    return OB_OK;
}

static ob_status read_header(struct reader *r) {
    ob_status status = OB_OK;
    if (pull_next(&r->json) != PULL_OBJECT) return wrong(r, "the header must be an object");
    while (status == OB_OK && pull_next(&r->json) == PULL_KEY) {
        r->where = (struct str){0};
        if (!str_is(r->json.text, "__metadata__")) status = read_tensor(r, r->json.text);
        else if (!pull_skip(&r->json)) status = wrong(r, "a value is expected");
    }
    if (status != OB_OK) return status;
    r->where = (struct str){0};
    if (r->json.kind != PULL_OBJECT_END || pull_next(&r->json) != PULL_END)
        return wrong(r, "the header must be one object");
    return OB_OK;
}

static ob_status read_part(struct safetensors *st, uint32_t index, ob_error *error) {
    const struct part *part = &st->part[index];
    struct reader r = {.st = st, .part = part, .index = index, .error = error};
    size_t first = st->list.n;
    uint64_t n = 0;
    if (part->size < sizeof n)
        return fail(error, part->path, r.where, 0, "too short for a safetensors file");
    memcpy(&n, part->p, sizeof n);
    if (n > HEADER_MAX || n > part->size - sizeof n)
        return fail(error, part->path, r.where, 0,
                    "no safetensors file: a header of %llu bytes in a file of %zu",
                    (unsigned long long)n, part->size);
    r.data_at = sizeof n + (size_t)n;
    pull_open(&r.json, (const char *)part->p + sizeof n, (size_t)n);
    ob_status status = read_header(&r);
    pull_close(&r.json);
    if (status != OB_OK || st->list.n == first) return status;
    return check_overlaps(part, (struct safetensors_tensor *)(void *)(st->list.p + first),
                          (st->list.n - first) / sizeof(struct safetensors_tensor), error);
}

static ob_status open_part(struct safetensors *st, const char *directory, struct str file,
                           ob_error *error) {
    struct part *part = &st->part[st->parts];
    char *path = arena_printf(&st->arena, "%s/%.*s", directory, (int)file.n, file.p);
    if (!path) return error_memory(error, "a path", file.n);
    ob_status status = map_open(path, &part->map, error);
    if (status != OB_OK) return status;
    part->p = part->map.p;
    part->size = part->map.size;
    part->path = part->map.path;
    return read_part(st, st->parts++, error);
}

/* ---- the set --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    const struct safetensors_tensor *x = a, *y = b;
    int order = str_order(x->name, y->name);
    return order ? order : (x->part > y->part) - (x->part < y->part);
}

static ob_status sort_names(struct safetensors *st, ob_error *error) {
    st->tensor = (struct safetensors_tensor *)(void *)st->list.p;
    st->tensors = st->list.n / sizeof *st->tensor;
    if (!st->tensor) return OB_OK; /* no tensors */
    qsort(st->tensor, st->tensors, sizeof *st->tensor, by_name);
    for (size_t i = 0; i + 1 < st->tensors; i++)
        if (str_eq(st->tensor[i].name, st->tensor[i + 1].name))
            return fail(error, st->part[st->tensor[i + 1].part].path, st->tensor[i].name,
                        OB_NO_OFFSET, "the tensor appears twice");
    return OB_OK;
}

/* A row of the index: this tensor is in that file. */
struct entry {
    struct str name, file;
    uint64_t at;
};

static int by_file(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int order = str_order(x->file, y->file);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* A name in the same directory, so that an index cannot reach elsewhere. */
static bool plain_name(struct str file) {
    return file.n > 0 && file.n < 256 && file.p[0] != '.' && !memchr(file.p, '/', file.n) &&
           !memchr(file.p, '\\', file.n) && !memchr(file.p, 0, file.n);
}

/* After "weight_map": fills `rows` with struct entry. */
static ob_status read_map(struct safetensors *st, struct json_pull *j, struct buf *rows,
                          const char *path, ob_error *error) {
    if (pull_next(j) != PULL_OBJECT)
        return fail(error, path, STR_LIT("weight_map"), pull_offset(j), "must be an object");
    while (pull_next(j) == PULL_KEY) {
        struct entry e = {.at = pull_offset(j)};
        e.name.n = j->text.n;
        e.name.p = arena_copy(&st->arena, j->text.p, j->text.n);
        if (!e.name.p) return error_memory(error, "a name", e.name.n);
        if (pull_next(j) != PULL_STRING || !plain_name(j->text))
            return fail(error, path, e.name, e.at, "must name a file in the same directory");
        e.file.n = j->text.n;
        e.file.p = arena_copy(&st->arena, j->text.p, j->text.n);
        if (!e.file.p) return error_memory(error, "a name", e.file.n);
        buf_add(rows, &e, sizeof e);
        if (rows->failed) return error_memory(error, "an index", rows->n);
    }
    return OB_OK;
}

static ob_status read_index(struct safetensors *st, const char *text, size_t n, const char *path,
                            struct buf *rows, ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    bool found = false;
    pull_open(&j, text, n);
    if (pull_next(&j) != PULL_OBJECT)
        status = fail(error, path, (struct str){0}, 0, "the index must be an object");
    while (status == OB_OK && pull_next(&j) == PULL_KEY) {
        if (str_is(j.text, "weight_map") && !found) {
            found = true;
            status = read_map(st, &j, rows, path, error);
        } else if (!pull_skip(&j)) {
            break;
        }
    }
    if (status == OB_OK && j.kind != PULL_BAD) pull_next(&j); /* nothing may follow */
    if (j.kind == PULL_BAD) {
        status = pull_error(&j, error);
        error_at(error, path, NULL, OB_NO_OFFSET);
    } else if (status == OB_OK && rows->n == 0) {
        status = fail(error, path, STR_LIT("weight_map"), OB_NO_OFFSET, "is missing or empty");
    }
    pull_close(&j);
    return status;
}

/* Opens each file of the index (rows >= 1) once; then every tensor must be where the index says. */
static ob_status open_shards(struct safetensors *st, const char *directory, const char *path,
                             struct entry *row, size_t rows, ob_error *error) {
    size_t files = 1;
    assert(rows > 0 && row);
    qsort(row, rows, sizeof *row, by_file);
    for (size_t i = 1; i < rows; i++) files += !str_eq(row[i].file, row[i - 1].file);
    st->part = arena_array(&st->arena, files, sizeof *st->part);
    if (!st->part) return error_memory(error, "shards", files * sizeof *st->part);
    for (size_t i = 0; i < rows; i++) {
        if (i > 0 && str_eq(row[i].file, row[i - 1].file)) continue;
        ob_status status = open_part(st, directory, row[i].file, error);
        if (status == OB_ERR_NOT_FOUND)
            status = fail(error, path, row[i].name, row[i].at, "its file %.*s is missing",
                          STR_ARG(row[i].file));
        if (status != OB_OK) return status;
    }
    ob_status status = sort_names(st, error);
    uint32_t part = 0;
    for (size_t i = 0; i < rows && status == OB_OK; i++) {
        if (i > 0 && !str_eq(row[i].file, row[i - 1].file)) part++;
        const struct safetensors_tensor *t = safetensors_tensor_find(st, row[i].name);
        if (!t || t->part != part)
            status = fail(error, path, row[i].name, row[i].at,
                          "the tensor is not in %.*s, where the index has it",
                          STR_ARG(row[i].file));
    }
    return status;
}

static ob_status open_index(struct safetensors *st, const char *directory, const char *path,
                            ob_error *error) {
    char *text = NULL;
    size_t n;
    struct buf rows = BUF_INIT;
    ob_status status = os_read_file(path, INDEX_MAX, &text, &n, error);
    if (status == OB_OK) status = read_index(st, text, n, path, &rows, error);
    if (status == OB_OK)
        status = open_shards(st, directory, path, (struct entry *)(void *)rows.p,
                             rows.n / sizeof(struct entry), error);
    buf_free(&rows);
    free(text);
    return status;
}

/* With room for one part. */
static struct safetensors *new_reader(ob_error *error) {
    struct safetensors *st = calloc(1, sizeof *st);
    if (st && (st->part = arena_array(&st->arena, 1, sizeof *st->part))) return st;
    free(st);
    error_memory(error, "a safetensors reader", sizeof *st);
    return NULL;
}

ob_status safetensors_open(const char *directory, struct safetensors **out, ob_error *error) {
    struct safetensors *st = *out = new_reader(error);
    if (!st) return OB_ERR_MEMORY;
    /* transformers looks in this order too. */
    ob_status status = open_part(st, directory, STR_LIT("model.safetensors"), error);
    if (status == OB_OK) {
        status = sort_names(st, error);
    } else if (status == OB_ERR_NOT_FOUND) {
        char *path = arena_printf(&st->arena, "%s/model.safetensors.index.json", directory);
        status = path ? open_index(st, directory, path, error)
                      : error_memory(error, "a path", strlen(directory));
        if (status == OB_ERR_NOT_FOUND) {
            error_set(error, status, "no model.safetensors and no model.safetensors.index.json");
            error_at(error, directory, NULL, OB_NO_OFFSET);
        }
    }
    if (status != OB_OK) safetensors_close(out);
    return status;
}

ob_status safetensors_open_memory(const void *data, size_t size, const char *name,
                                  struct safetensors **out, ob_error *error) {
    struct safetensors *st = *out = new_reader(error);
    if (!st) return OB_ERR_MEMORY;
    st->part[0].p = data;
    st->part[0].size = size;
    st->part[0].path = arena_copy(&st->arena, name, strlen(name));
    st->parts = 1;
    ob_status status = st->part[0].path ? read_part(st, 0, error)
                                        : error_memory(error, "a name", strlen(name));
    if (status == OB_OK) status = sort_names(st, error);
    if (status != OB_OK) safetensors_close(out);
    return status;
}

void safetensors_close(struct safetensors **st) {
    if (!*st) return;
    for (uint32_t i = 0; i < (*st)->parts; i++) map_close(&(*st)->part[i].map);
    buf_free(&(*st)->list);
    arena_free(&(*st)->arena);
    free(*st);
    *st = NULL;
}

/* ---- access ---------------------------------------------------------------------------------- */

uint32_t safetensors_parts(const struct safetensors *st) { return st->parts; }
const char *safetensors_part_path(const struct safetensors *st, uint32_t part) {
    return st->part[part].path;
}
uint64_t safetensors_file_bytes(const struct safetensors *st) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < st->parts; i++) bytes += st->part[i].size;
    return bytes;
}

ob_status safetensors_load(struct safetensors *st, const struct map_load *load, ob_error *error) {
    ob_status status = OB_OK;
    for (uint32_t i = 0; i < st->parts && status == OB_OK; i++)
        status = map_load(&st->part[i].map, load, error);
    return status;
}

uint64_t safetensors_identity(const struct safetensors *st, uint64_t hash) {
    for (uint32_t i = 0; i < st->parts; i++) hash = map_identity(&st->part[i].map, hash);
    return hash;
}

size_t safetensors_tensor_count(const struct safetensors *st) { return st->tensors; }
const struct safetensors_tensor *safetensors_tensor_at(const struct safetensors *st, size_t i) {
    return &st->tensor[i];
}
const struct safetensors_tensor *safetensors_tensor_find(const struct safetensors *st,
                                                         struct str name) {
    size_t low = 0, high = st->tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_order(name, st->tensor[middle].name);
        if (order == 0) return &st->tensor[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}
