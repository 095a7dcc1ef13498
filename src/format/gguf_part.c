/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_part.c: parses one GGUF file into views. Layout (all little endian):
 *
 *   "GGUF" version:u32 tensors:u64 values:u64
 *   values  x { key:str type:u32 value }          str: length:u64 bytes, not terminated
 *   tensors x { name:str ndim:u32 dim:u64[ndim] type:u32 offset:u64 }
 *   padding to the alignment, then tensor data; offsets count from here
 *
 * Nothing is believed: every length is compared with the bytes left before it is used, so no sum or
 * product below can overflow, and memory stays proportional to the file. */
#include "format/gguf_part.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

enum {
    NAME_MAX_BYTES = 65535, /* of keys and tensor names, as the specification says for keys */
    VALUES_MAX = 1 << 20,   /* bound the memory of a hostile file: an entry of a few bytes costs */
    TENSORS_MAX = 1 << 22,  /* us about a hundred */
    VALUE_MIN = 8 + 1 + 4 + 1,            /* bytes of the smallest key-value pair */
    TENSOR_MIN = 8 + 1 + 4 + 8 + 4 + 8,   /* and of the smallest tensor entry */
    ALIGNMENT_MAX = 1 << 30,
};

struct reader {
    const struct gguf_part *part;
    size_t at;
    struct str where; /* the key or tensor being read */
    ob_error *error;
};

static ob_status fail(const struct reader *r, ob_status status, uint64_t at, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

static ob_status fail(const struct reader *r, ob_status status, uint64_t at, const char *format,
                      ...) {
    char message[256], where[128];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    snprintf(where, sizeof where, "%.*s", STR_ARG(r->where));
    error_set(r->error, status, "%s", message);
    error_at(r->error, r->part->path, where, at);
    return status;
}

static size_t left(const struct reader *r) { return r->part->size - r->at; }
static const uint8_t *here(const struct reader *r) { return r->part->p + r->at; }

static ob_status ends(const struct reader *r, const char *what) {
    return fail(r, OB_ERR_FORMAT, r->at, "the file ends inside %s", what);
}

static ob_status read_u32(struct reader *r, uint32_t *out, const char *what) {
    *out = 0;
    if (left(r) < sizeof *out) return ends(r, what);
    memcpy(out, here(r), sizeof *out);
    r->at += sizeof *out;
    return OB_OK;
}

static ob_status read_u64(struct reader *r, uint64_t *out, const char *what) {
    *out = 0;
    if (left(r) < sizeof *out) return ends(r, what);
    memcpy(out, here(r), sizeof *out);
    r->at += sizeof *out;
    return OB_OK;
}

static ob_status read_str(struct reader *r, struct str *out, const char *what) {
    uint64_t n;
    *out = (struct str){0};
    ob_status status = read_u64(r, &n, what);
    if (status != OB_OK) return status;
    if (n > left(r))
        return fail(r, OB_ERR_FORMAT, r->at - 8, "%s of %llu bytes runs past the end of the file",
                    what, (unsigned long long)n);
    *out = (struct str){(const char *)here(r), (size_t)n};
    r->at += (size_t)n;
    return OB_OK;
}

/* Keys and tensor names become C strings, JSON and terminal output, so they are held to plain
 * UTF-8. String values may be any bytes: tokens are. */
static ob_status read_name(struct reader *r, struct str *out, const char *what) {
    size_t at = r->at;
    ob_status status = read_str(r, out, what);
    if (status != OB_OK) return status;
    if (out->n == 0) return fail(r, OB_ERR_FORMAT, at, "%s is empty", what);
    if (out->n > NAME_MAX_BYTES)
        return fail(r, OB_ERR_LIMIT, at, "%s of %zu bytes, at most %d are allowed", what, out->n,
                    NAME_MAX_BYTES);
    for (size_t i = 0; i < out->n;) {
        uint32_t code;
        size_t n = utf8_decode(out->p + i, out->n - i, &code);
        if (code == UTF8_BAD || code == 0)
            return fail(r, OB_ERR_FORMAT, at + 8 + i, "%s is not UTF-8 text", what);
        i += n;
    }
    return OB_OK;
}

/* ---- key-value pairs ------------------------------------------------------------------------- */

size_t gguf_width(enum gguf_type type) {
    static const uint8_t width[GGUF_TYPES] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2, [GGUF_I16] = 2,
        [GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
        [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};
    return (unsigned)type < GGUF_TYPES ? width[type] : 0;
}

/* Walks n strings once to check them all; `index` (n entries) gets the offset of each. */
static ob_status read_strings(struct reader *r, uint64_t n, uint64_t *index) {
    size_t start = r->at;
    for (uint64_t i = 0; i < n; i++) {
        struct str unused;
        index[i] = r->at - start;
        ob_status status = read_str(r, &unused, "a string");
        if (status != OB_OK) return status;
    }
    return OB_OK;
}

static ob_status read_elements(struct reader *r, struct arena *arena, struct gguf_value *v) {
    enum gguf_type type = v->type == GGUF_ARRAY ? v->element : v->type;
    size_t width = type == GGUF_STRING ? 8 : gguf_width(type);
    v->data = here(r);
    if (v->n > left(r) / width)
        return fail(r, OB_ERR_FORMAT, r->at,
                    "%llu elements of %zu or more bytes run past the end of the file",
                    (unsigned long long)v->n, width);
    if (type == GGUF_STRING) {
        uint64_t one, *index = &one;
        if (v->type == GGUF_ARRAY) {
            index = arena_array(arena, (size_t)v->n, sizeof *index);
            if (!index)
                return error_memory(r->error, "a string array", (size_t)v->n * sizeof *index);
            v->at = index;
        }
        return read_strings(r, v->n, index);
    }
    if (type == GGUF_BOOL)
        for (size_t i = 0; i < v->n; i++)
            if (v->data[i] > 1)
                return fail(r, OB_ERR_FORMAT, r->at + i, "a bool of value %u, must be 0 or 1",
                            v->data[i]);
    r->at += (size_t)v->n * width;
    return OB_OK;
}

static ob_status read_value(struct reader *r, struct arena *arena, struct gguf_value *v) {
    size_t at;
    uint32_t type, element;
    r->where = (struct str){0};
    ob_status status = read_name(r, &v->key, "a key");
    if (status != OB_OK) return status;
    r->where = v->key;
    at = r->at;
    if ((status = read_u32(r, &type, "a value's type")) != OB_OK) return status;
    if (type >= GGUF_TYPES)
        return fail(r, OB_ERR_FORMAT, at, "unknown value type %u", type);
    v->type = (enum gguf_type)type;
    v->n = 1;
    if (type == GGUF_ARRAY) {
        at = r->at;
        if ((status = read_u32(r, &element, "an array's type")) != OB_OK) return status;
        if (element == GGUF_ARRAY)
            return fail(r, OB_ERR_UNSUPPORTED, at, "an array of arrays is not supported");
        if (element >= GGUF_TYPES)
            return fail(r, OB_ERR_FORMAT, at, "unknown array element type %u", element);
        v->element = (enum gguf_type)element;
        if ((status = read_u64(r, &v->n, "an array's length")) != OB_OK) return status;
    }
    return read_elements(r, arena, v);
}

/* ---- keys in order, for the search and to find duplicates ------------------------------------ */

/* Tables of names are sorted arrays, not hash tables: a hostile file can make every name collide,
 * but not make a sort slow. Equal keys stand in file order. */
static int by_key(const void *a, const void *b) {
    const struct gguf_value *x = *(struct gguf_value *const *)a,
                            *y = *(struct gguf_value *const *)b;
    int order = str_order(x->key, y->key);
    return order ? order : (x > y) - (x < y);
}

static ob_status sort_keys(struct reader *r, struct gguf_part *part, struct arena *arena) {
    size_t n = part->values;
    const struct gguf_value **sorted = arena_array(arena, n, sizeof *sorted);
    if (!sorted) return error_memory(r->error, "keys", n * sizeof *sorted);
    for (size_t i = 0; i < n; i++) sorted[i] = &part->value[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 0; i + 1 < n; i++) {
        r->where = sorted[i + 1]->key;
        if (str_eq(sorted[i]->key, r->where))
            return fail(r, OB_ERR_FORMAT, (uint64_t)((const uint8_t *)r->where.p - part->p) - 8,
                        "the key appears twice");
    }
    part->by_key = sorted;
    return OB_OK;
}

const struct gguf_value *gguf_part_find(const struct gguf_part *part, struct str key) {
    size_t low = 0, high = part->values;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_order(key, part->by_key[middle]->key);
        if (order == 0) return part->by_key[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

static ob_status read_alignment(struct reader *r, struct gguf_part *part) {
    const char *key = "general.alignment";
    const struct gguf_value *v = gguf_part_find(part, str_of(key));
    uint64_t n = 32;
    r->where = str_of(key);
    uint64_t at = v ? (uint64_t)(v->data - part->p) : OB_NO_OFFSET;
    if (v && (v->type == GGUF_ARRAY || !gguf_u64(v, 0, &n)))
        return fail(r, OB_ERR_FORMAT, at, "the alignment must be a whole number");
    if (n == 0 || (n & (n - 1)) != 0 || n > ALIGNMENT_MAX)
        return fail(r, OB_ERR_FORMAT, at, "an alignment of %llu, must be a power of two",
                    (unsigned long long)n);
    part->alignment = (uint32_t)n;
    return OB_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static ob_status read_dims(struct reader *r, struct gguf_tensor *t) {
    size_t at = r->at;
    ob_status status = read_u32(r, &t->ndim, "a tensor's dimension count");
    if (status != OB_OK) return status;
    if (t->ndim < 1 || t->ndim > 4)
        return fail(r, OB_ERR_FORMAT, at, "%u dimensions, must be 1 to 4", t->ndim);
    for (uint32_t i = 0; i < 4; i++) {
        t->dim[i] = 1;
        at = r->at;
        if (i < t->ndim && (status = read_u64(r, &t->dim[i], "a tensor's dimensions")) != OB_OK)
            return status;
        if (t->dim[i] == 0) return fail(r, OB_ERR_FORMAT, at, "dimension %u is zero", i);
    }
    return OB_OK;
}

/* Integers that a tensor may hold, by ggml's number; it is no weight then. */
static const struct integers { uint32_t type; const char *name; uint32_t bytes; } integers[] = {
    {24, "I8", 1}, {25, "I16", 2}, {26, "I32", 4}, {27, "I64", 8}};

static const struct integers *integers_of(uint32_t type) {
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (integers[i].type == type) return &integers[i];
    return NULL;
}

/* Type and dims to bytes; rows are whole blocks. */
static ob_status size_tensor(struct reader *r, struct gguf_tensor *t, const struct integers *is,
                             size_t at) {
    if (t->quant && t->dim[0] % t->quant->block)
        return fail(r, OB_ERR_FORMAT, at,
                    "a row of %llu weights is no whole number of %s blocks of %u",
                    (unsigned long long)t->dim[0], t->quant->name, t->quant->block);
    size_t bytes = 0;
    bool fits;
    if (t->quant) fits = (bytes = quant_row_bytes(t->quant, t->dim[0])) != 0;
    else fits = !__builtin_mul_overflow(t->dim[0], is->bytes, &bytes);
    for (uint32_t i = 1; i < 4 && fits; i++)
        fits = !__builtin_mul_overflow(bytes, t->dim[i], &bytes);
    if (!fits)
        return fail(r, OB_ERR_FORMAT, at, "%llu x %llu x %llu x %llu weights overflow",
                    (unsigned long long)t->dim[0], (unsigned long long)t->dim[1],
                    (unsigned long long)t->dim[2], (unsigned long long)t->dim[3]);
    t->bytes = bytes;
    return OB_OK;
}

static ob_status read_tensor(struct reader *r, struct gguf_tensor *t) {
    size_t start = r->at, at;
    uint32_t type;
    ob_status status;
    r->where = (struct str){0};
    if ((status = read_name(r, &t->name, "a tensor name")) != OB_OK) return status;
    r->where = t->name;
    if ((status = read_dims(r, t)) != OB_OK) return status;
    at = r->at;
    if ((status = read_u32(r, &type, "a tensor's type")) != OB_OK) return status;
    const struct integers *is = integers_of(type);
    t->quant = quant_find(type);
    if (!t->quant && !is)
        return fail(r, OB_ERR_UNSUPPORTED, at, "tensor type %u is not known", type);
    t->type = is ? is->name : t->quant->name;
    if ((status = size_tensor(r, t, is, start)) != OB_OK) return status;
    at = r->at;
    if ((status = read_u64(r, &t->offset, "a tensor's offset")) != OB_OK) return status;
    if (t->offset & (r->part->alignment - 1))
        return fail(r, OB_ERR_FORMAT, at,
                    "the tensor's offset %llu is no multiple of the alignment %u",
                    (unsigned long long)t->offset, r->part->alignment);
    return OB_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a,
                             *y = *(struct gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static ob_status past_end(const struct reader *r, const struct gguf_tensor *t) {
    uint64_t at; /* where the tensor would start, if that is a number */
    if (__builtin_add_overflow(r->part->data_at, t->offset, &at)) at = OB_NO_OFFSET;
    return fail(r, OB_ERR_FORMAT, at,
                "the tensor's %zu bytes run past the end of the file (%zu bytes)", t->bytes,
                r->part->size);
}

/* Offsets become places in the file: all inside it, none shared. */
static ob_status place_tensors(struct reader *r, struct gguf_part *part) {
    if (part->tensors == 0) return OB_OK;
    uint64_t room = part->data_at < part->size ? part->size - part->data_at : 0;
    struct gguf_tensor **sorted = malloc(part->tensors * sizeof *sorted);
    if (!sorted) return error_memory(r->error, "tensors", part->tensors * sizeof *sorted);
    ob_status status = OB_OK;
    for (size_t i = 0; i < part->tensors && status == OB_OK; i++) {
        struct gguf_tensor *t = sorted[i] = &part->tensor[i];
        r->where = t->name;
        if (t->offset > room || t->bytes > room - t->offset)
            status = past_end(r, t);
    }
    if (status == OB_OK) qsort(sorted, part->tensors, sizeof *sorted, by_offset);
    for (size_t i = 0; i + 1 < part->tensors && status == OB_OK; i++) {
        const struct gguf_tensor *t = sorted[i], *next = sorted[i + 1];
        r->where = next->name;
        if (t->offset + t->bytes > next->offset)
            status = fail(r, OB_ERR_FORMAT, part->data_at + next->offset,
                          "the tensor overlaps tensor '%.*s'", STR_ARG(t->name));
    }
    free(sorted);
    for (size_t i = 0; i < part->tensors && status == OB_OK; i++) {
        part->tensor[i].offset += part->data_at;
        part->tensor[i].data = part->p + part->tensor[i].offset;
    }
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Magic, version and the two counts, which must be able to fit in the bytes that follow. */
static ob_status read_header(struct reader *r, struct gguf_part *part, uint64_t *tensors,
                             uint64_t *values) {
    ob_status status;
    if (left(r) < 4 || memcmp(here(r), "GGUF", 4) != 0)
        return fail(r, OB_ERR_FORMAT, 0, "not a GGUF file");
    r->at = 4;
    if ((status = read_u32(r, &part->version, "the header")) != OB_OK) return status;
    /* A big-endian file writes the magic the same way, so its version reads as 2 << 24. */
    if (part->version && (part->version & 0xffff) == 0)
        return fail(r, OB_ERR_UNSUPPORTED, 4,
                    "a big-endian GGUF file; only little-endian ones are supported");
    if (part->version != 2 && part->version != 3)
        return fail(r, OB_ERR_UNSUPPORTED, 4, "GGUF version %u; versions 2 and 3 are supported",
                    part->version);
    if ((status = read_u64(r, tensors, "the header")) != OB_OK) return status;
    if ((status = read_u64(r, values, "the header")) != OB_OK) return status;
    if (*tensors > left(r) / TENSOR_MIN)
        return fail(r, OB_ERR_FORMAT, 8, "%llu tensors cannot fit in a file of %zu bytes",
                    (unsigned long long)*tensors, part->size);
    if (*values > left(r) / VALUE_MIN)
        return fail(r, OB_ERR_FORMAT, 16, "%llu keys cannot fit in a file of %zu bytes",
                    (unsigned long long)*values, part->size);
    if (*tensors > TENSORS_MAX)
        return fail(r, OB_ERR_LIMIT, 8, "%llu tensors, at most %d are read",
                    (unsigned long long)*tensors, TENSORS_MAX);
    if (*values > VALUES_MAX)
        return fail(r, OB_ERR_LIMIT, 16, "%llu keys, at most %d are read",
                    (unsigned long long)*values, VALUES_MAX);
    return OB_OK;
}

ob_status gguf_part_parse(struct gguf_part *part, struct arena *arena, ob_error *error) {
    struct reader r = {.part = part, .error = error};
    uint64_t tensors = 0, values = 0;
    ob_status status = read_header(&r, part, &tensors, &values);
    if (status != OB_OK) return status;
    part->value = arena_array(arena, (size_t)values, sizeof *part->value);
    part->tensor = arena_array(arena, (size_t)tensors, sizeof *part->tensor);
    if (!part->value || !part->tensor)
        return error_memory(error, "keys and tensors", (size_t)values * sizeof *part->value +
                                                           (size_t)tensors * sizeof *part->tensor);
    for (; part->values < values; part->values++)
        if ((status = read_value(&r, arena, &part->value[part->values])) != OB_OK) return status;
    if ((status = sort_keys(&r, part, arena)) != OB_OK) return status;
    if ((status = read_alignment(&r, part)) != OB_OK) return status;
    for (; part->tensors < tensors; part->tensors++)
        if ((status = read_tensor(&r, &part->tensor[part->tensors])) != OB_OK) return status;
    part->data_at = ((uint64_t)r.at + part->alignment - 1) & ~((uint64_t)part->alignment - 1);
    return place_tensors(&r, part);
}
