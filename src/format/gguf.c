/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.c: a GGUF set of one or more parts, and access to its values. gguf_part.c parses each file;
 * here the parts are found, held against each other and joined. The first part carries the
 * metadata; another part may repeat a key with the same value, and has its own split.no and
 * alignment. */
#include "format/gguf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "format/gguf_part.h"

enum { PARTS_MAX = 99999 }; /* five digits in the file name */

struct gguf {
    struct arena arena;
    struct gguf_part *part;
    uint32_t parts;
    struct gguf_tensor *tensor;         /* of all parts, in file order */
    const struct gguf_tensor **by_name; /* the same, sorted */
    size_t tensors;
};

/* ---- split sets ------------------------------------------------------------------------------ */

/* What a part says about its set; a file without these keys is part 0 of 1. */
struct split {
    uint64_t no, count, tensors;
    bool has_tensors;
};

static ob_status wrong_part(const struct gguf_part *part, const char *key, ob_error *error) {
    const struct gguf_value *v = gguf_part_find(part, str_of(key));
    error_at(error, part->path, key, v ? (uint64_t)(v->data - part->p) : OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

static ob_status split_number(const struct gguf_part *part, const char *key, uint64_t *out,
                              bool *found, ob_error *error) {
    const struct gguf_value *v = gguf_part_find(part, str_of(key));
    *found = v != NULL;
    if (!v || (v->type != GGUF_ARRAY && gguf_u64(v, 0, out))) return OB_OK;
    error_set(error, OB_ERR_FORMAT, "must be a whole number");
    return wrong_part(part, key, error);
}

static ob_status read_split(const struct gguf_part *part, struct split *split, ob_error *error) {
    *split = (struct split){.count = 1};
    bool found;
    ob_status status = split_number(part, "split.no", &split->no, &found, error);
    if (status == OB_OK) status = split_number(part, "split.count", &split->count, &found, error);
    if (status == OB_OK)
        status = split_number(part, "split.tensors.count", &split->tensors, &split->has_tensors,
                              error);
    if (status != OB_OK) return status;
    if (split->count == 0 || split->count > PARTS_MAX) {
        error_set(error, OB_ERR_FORMAT, "a set of %llu parts", (unsigned long long)split->count);
        return wrong_part(part, "split.count", error);
    }
    if (split->no >= split->count) {
        error_set(error, OB_ERR_FORMAT, "part %llu of a set of %llu (they count from 0)",
                  (unsigned long long)split->no, (unsigned long long)split->count);
        return wrong_part(part, "split.no", error);
    }
    return OB_OK;
}

static bool same_value(const struct gguf_value *a, const struct gguf_value *b) {
    if (a->type != b->type || a->n != b->n || (a->type == GGUF_ARRAY && a->element != b->element))
        return false;
    struct str x, y;
    size_t width = gguf_width(a->type == GGUF_ARRAY ? a->element : a->type);
    if (width) return memcmp(a->data, b->data, (size_t)a->n * width) == 0;
    for (uint64_t i = 0; i < a->n; i++)
        if (!gguf_str(a, i, &x) || !gguf_str(b, i, &y) || !str_eq(x, y)) return false;
    return true;
}

/* Part `no` must say so, and its metadata must be the first part's. */
static ob_status check_part(const struct gguf *gguf, uint32_t no, ob_error *error) {
    const struct gguf_part *part = &gguf->part[no], *first = &gguf->part[0];
    struct split split;
    ob_status status = read_split(part, &split, error);
    if (status != OB_OK) return status;
    if (split.no != no || split.count != gguf->parts) {
        error_set(error, OB_ERR_FORMAT, "is part %llu of %llu where part %u of %u is expected",
                  (unsigned long long)split.no + 1, (unsigned long long)split.count, no + 1,
                  gguf->parts);
        return wrong_part(part, split.no != no ? "split.no" : "split.count", error);
    }
    for (size_t i = 0; i < part->values; i++) {
        const struct gguf_value *v = &part->value[i], *other = gguf_part_find(first, v->key);
        if (str_is(v->key, "split.no") || str_is(v->key, "general.alignment")) continue;
        if (other && same_value(v, other)) continue;
        char key[128];
        snprintf(key, sizeof key, "%.*s", STR_ARG(v->key));
        error_set(error, OB_ERR_FORMAT,
                  other ? "differs from the first part's" : "is not in the first part");
        error_at(error, part->path, key, (uint64_t)(v->data - part->p));
        return OB_ERR_FORMAT;
    }
    return OB_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static ob_status open_part(struct gguf *gguf, const char *path, struct gguf_part *part,
                           ob_error *error) {
    ob_status status = map_open(path, &part->map, error);
    if (status != OB_OK) return status;
    part->p = part->map.p;
    part->size = part->map.size;
    part->path = part->map.path;
    return gguf_part_parse(part, &gguf->arena, error);
}

/* gguf->part[0] is the opened file, one of a set: opens the others by their names. */
static ob_status open_others(struct gguf *gguf, const struct split *split, ob_error *error) {
    const char *path = gguf->part[0].path;
    uint32_t count = (uint32_t)split->count;
    char tail[40];
    int tail_n = snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", (unsigned)split->no + 1, count);
    size_t n = strlen(path);
    if (n < (size_t)tail_n || n > INT_MAX || strcmp(path + n - tail_n, tail) != 0) {
        error_set(error, OB_ERR_FORMAT, "is part %u of %u, but its name does not end in %s",
                  (unsigned)split->no + 1, count, tail);
        return wrong_part(&gguf->part[0], "split.no", error);
    }
    struct gguf_part opened = gguf->part[0];
    struct gguf_part *part = arena_array(&gguf->arena, count, sizeof *part);
    if (!part) return error_memory(error, "the parts of a set", count * sizeof *part);
    part[split->no] = opened;
    gguf->part = part;
    gguf->parts = count;
    for (uint32_t i = 0; i < count; i++) {
        if (i == split->no) continue;
        char *name = arena_printf(&gguf->arena, "%.*s-%05u-of-%05u.gguf", (int)n - tail_n,
                                  opened.path, i + 1, count);
        if (!name) return error_memory(error, "a path", n);
        ob_status status = open_part(gguf, name, &part[i], error);
        if (status == OB_ERR_NOT_FOUND) {
            error_set(error, status, "part %u of %u is missing", i + 1, count);
            error_at(error, name, NULL, OB_NO_OFFSET);
        }
        if (status != OB_OK) return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        ob_status status = check_part(gguf, i, error);
        if (status != OB_OK) return status;
    }
    return OB_OK;
}

/* Equal names in file order. */
static int by_name(const void *a, const void *b) {
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a,
                             *y = *(struct gguf_tensor *const *)b;
    int order = str_order(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

/* One list of all parts' tensors, and the sorted one. */
static ob_status join(struct gguf *gguf, ob_error *error) {
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < gguf->parts; i++) n += gguf->part[i].tensors;
    gguf->tensor = arena_array(&gguf->arena, n, sizeof *gguf->tensor);
    gguf->by_name = arena_array(&gguf->arena, n, sizeof *gguf->by_name);
    if (!gguf->tensor || !gguf->by_name)
        return error_memory(error, "tensors", n * sizeof *gguf->tensor);
    gguf->tensors = n;
    for (uint32_t i = 0; i < gguf->parts; i++)
        for (size_t k = 0; k < gguf->part[i].tensors; k++, at++) {
            gguf->tensor[at] = gguf->part[i].tensor[k];
            gguf->tensor[at].part = i;
            gguf->by_name[at] = &gguf->tensor[at];
        }
    qsort(gguf->by_name, n, sizeof *gguf->by_name, by_name);
    for (size_t i = 0; i + 1 < n; i++) {
        const struct gguf_tensor *t = gguf->by_name[i + 1];
        if (!str_eq(t->name, gguf->by_name[i]->name)) continue;
        const struct gguf_part *part = &gguf->part[t->part];
        char name[128];
        snprintf(name, sizeof name, "%.*s", STR_ARG(t->name));
        error_set(error, OB_ERR_FORMAT, "the tensor appears twice");
        error_at(error, part->path, name, (uint64_t)((const uint8_t *)t->name.p - part->p) - 8);
        return OB_ERR_FORMAT;
    }
    return OB_OK;
}

/* gguf->part[0] is parsed: the rest of opening. */
static ob_status complete(struct gguf *gguf, bool may_open, ob_error *error) {
    struct split split;
    ob_status status = read_split(&gguf->part[0], &split, error);
    if (status != OB_OK) return status;
    if (split.count > 1 && !may_open) {
        error_set(error, OB_ERR_UNSUPPORTED, "one part of a split set");
        return wrong_part(&gguf->part[0], "split.count", error);
    }
    if (split.count > 1) status = open_others(gguf, &split, error);
    if (status == OB_OK) status = join(gguf, error);
    if (status == OB_OK && split.has_tensors && split.tensors != gguf->tensors) {
        status = error_set(error, OB_ERR_FORMAT, "%llu tensors are promised, the set has %zu",
                           (unsigned long long)split.tensors, gguf->tensors);
        wrong_part(&gguf->part[split.no], "split.tensors.count", error);
    }
    return status;
}

static struct gguf *new_gguf(ob_error *error) {
    struct gguf *gguf = calloc(1, sizeof *gguf);
    if (gguf && (gguf->part = arena_array(&gguf->arena, 1, sizeof *gguf->part))) {
        gguf->parts = 1;
        return gguf;
    }
    free(gguf);
    error_memory(error, "a GGUF reader", sizeof *gguf);
    return NULL;
}

ob_status gguf_open(const char *path, struct gguf **out, ob_error *error) {
    struct gguf *gguf = *out = new_gguf(error);
    if (!gguf) return OB_ERR_MEMORY;
    ob_status status = open_part(gguf, path, &gguf->part[0], error);
    if (status == OB_OK) status = complete(gguf, true, error);
    if (status != OB_OK) gguf_close(out);
    return status;
}

ob_status gguf_open_memory(const void *data, size_t size, const char *name, struct gguf **out,
                           ob_error *error) {
    struct gguf *gguf = *out = new_gguf(error);
    if (!gguf) return OB_ERR_MEMORY;
    gguf->part[0].p = data;
    gguf->part[0].size = size;
    gguf->part[0].path = arena_copy(&gguf->arena, name, strlen(name));
    ob_status status = gguf->part[0].path ? gguf_part_parse(&gguf->part[0], &gguf->arena, error)
                                          : error_memory(error, "a name", strlen(name));
    if (status == OB_OK) status = complete(gguf, false, error);
    if (status != OB_OK) gguf_close(out);
    return status;
}

void gguf_close(struct gguf **gguf) {
    if (!*gguf) return;
    for (uint32_t i = 0; i < (*gguf)->parts; i++) map_close(&(*gguf)->part[i].map);
    arena_free(&(*gguf)->arena);
    free(*gguf);
    *gguf = NULL;
}

/* ---- access ---------------------------------------------------------------------------------- */

uint32_t gguf_version(const struct gguf *gguf) { return gguf->part[0].version; }
uint32_t gguf_alignment(const struct gguf *gguf) { return gguf->part[0].alignment; }
uint32_t gguf_parts(const struct gguf *gguf) { return gguf->parts; }
const char *gguf_part_path(const struct gguf *gguf, uint32_t part) { return gguf->part[part].path; }

uint64_t gguf_file_bytes(const struct gguf *gguf) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < gguf->parts; i++) bytes += gguf->part[i].size;
    return bytes;
}

ob_status gguf_load(struct gguf *gguf, const struct map_load *load, ob_error *error) {
    ob_status status = OB_OK;
    for (uint32_t i = 0; i < gguf->parts && status == OB_OK; i++)
        status = map_load(&gguf->part[i].map, load, error);
    return status;
}

uint64_t gguf_identity(const struct gguf *gguf, uint64_t hash) {
    for (uint32_t i = 0; i < gguf->parts; i++) hash = map_identity(&gguf->part[i].map, hash);
    return hash;
}

size_t gguf_value_count(const struct gguf *gguf) { return gguf->part[0].values; }
const struct gguf_value *gguf_value_at(const struct gguf *gguf, size_t i) {
    return &gguf->part[0].value[i];
}
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key) {
    return gguf_part_find(&gguf->part[0], str_of(key));
}

size_t gguf_tensor_count(const struct gguf *gguf) { return gguf->tensors; }
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t i) {
    return &gguf->tensor[i];
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *gguf, struct str name) {
    size_t low = 0, high = gguf->tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_order(name, gguf->by_name[middle]->name);
        if (order == 0) return gguf->by_name[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum gguf_type scalar_type(const struct gguf_value *v) {
    return v->type == GGUF_ARRAY ? v->element : v->type;
}

static bool is_signed(enum gguf_type type) {
    return type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
}

/* Element i of a numeric value, sign-extended or zero-extended; its type, GGUF_TYPES if none. */
static enum gguf_type number(const struct gguf_value *v, uint64_t i, uint64_t *bits) {
    if (!v || i >= v->n) return GGUF_TYPES;
    enum gguf_type type = scalar_type(v);
    size_t width = gguf_width(type);
    if (width == 0) return GGUF_TYPES;
    *bits = 0;
    memcpy(bits, v->data + i * width, width);
    if (is_signed(type)) {
        unsigned shift = 64 - 8 * (unsigned)width;
        *bits = (uint64_t)((int64_t)(*bits << shift) >> shift);
    }
    return type;
}

static bool is_whole(enum gguf_type type) {
    return type < GGUF_TYPES && type != GGUF_F32 && type != GGUF_F64 && type != GGUF_BOOL;
}

bool gguf_u64(const struct gguf_value *v, uint64_t i, uint64_t *out) {
    uint64_t bits;
    enum gguf_type type = number(v, i, &bits);
    if (!is_whole(type) || (is_signed(type) && bits > INT64_MAX)) return false;
    *out = bits;
    return true;
}

bool gguf_i64(const struct gguf_value *v, uint64_t i, int64_t *out) {
    uint64_t bits;
    enum gguf_type type = number(v, i, &bits);
    if (!is_whole(type) || (!is_signed(type) && bits > INT64_MAX)) return false;
    *out = (int64_t)bits;
    return true;
}

bool gguf_f64(const struct gguf_value *v, uint64_t i, double *out) {
    uint64_t bits;
    enum gguf_type type = number(v, i, &bits);
    if (type == GGUF_F32) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        *out = (double)f;
    } else if (type == GGUF_F64) {
        memcpy(out, &bits, sizeof *out);
    } else if (is_whole(type)) {
        *out = is_signed(type) ? (double)(int64_t)bits : (double)bits;
    } else {
        return false;
    }
    return true;
}

bool gguf_bool(const struct gguf_value *v, uint64_t i, bool *out) {
    uint64_t bits;
    if (number(v, i, &bits) != GGUF_BOOL) return false;
    *out = bits != 0;
    return true;
}

bool gguf_str(const struct gguf_value *v, uint64_t i, struct str *out) {
    if (!v || i >= v->n || scalar_type(v) != GGUF_STRING) return false;
    const uint8_t *p = v->data + (v->at ? v->at[i] : 0);
    uint64_t n;
    memcpy(&n, p, sizeof n);
    *out = (struct str){(const char *)p + sizeof n, (size_t)n};
    return true;
}

const char *gguf_type_name(enum gguf_type type) {
    static const char *const name[GGUF_TYPES] = {
        [GGUF_U8] = "u8",     [GGUF_I8] = "i8",       [GGUF_U16] = "u16", [GGUF_I16] = "i16",
        [GGUF_U32] = "u32",   [GGUF_I32] = "i32",     [GGUF_F32] = "f32", [GGUF_BOOL] = "bool",
        [GGUF_STRING] = "str", [GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
        [GGUF_F64] = "f64"};
    return (unsigned)type < GGUF_TYPES ? name[type] : "unknown";
}
