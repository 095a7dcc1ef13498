/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.h: GGUF v2 and v3 files (also split ones, "-00001-of-0000N.gguf"), mapped and
 * bounds-checked. Layout: ggml's docs/gguf.md. After gguf_open every string, array, tensor and
 * offset lies inside a mapped file, keys and tensor names are unique plain UTF-8, tensors do not
 * overlap, dims are non-zero and products fit. A split set opens from any of its parts; its
 * metadata is the first part's. Immutable after open, so thread safe. Strings and data point into
 * the mapping. */
#ifndef FORMAT_GGUF_H
#define FORMAT_GGUF_H

#include "base/map.h"
#include "base/str.h"
#include "onebit.h"
#include "quant/quant.h"

enum gguf_type {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING,
    GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64, GGUF_TYPES
};

struct gguf_value {
    struct str key;
    enum gguf_type type;     /* GGUF_ARRAY: elements are `element` */
    enum gguf_type element;  /* of arrays; nested arrays are refused */
    uint64_t n;              /* elements; 1 for scalars */
    const uint8_t *data;     /* first element; unaligned */
    const uint64_t *at;      /* string arrays: byte offset of each element from data */
};

struct gguf_tensor {
    struct str name;
    const char *type;        /* "Q8_0"; of integers as safetensors spells them: "I32" */
    const struct quant *quant; /* NULL: integers */
    uint32_t ndim;           /* 1-4 */
    uint64_t dim[4];         /* GGUF order: dim[0] is the row length; unused are 1 */
    const void *data;
    size_t bytes;
    uint32_t part;           /* index of the split file */
    uint64_t offset;         /* in that file */
};

struct gguf;

ob_status gguf_open(const char *path, struct gguf **out, ob_error *error);
/* One whole file of bytes that outlive the reader; `name` stands for its path in errors. */
ob_status gguf_open_memory(const void *data, size_t size, const char *name, struct gguf **out,
                           ob_error *error);
void gguf_close(struct gguf **gguf);

uint32_t gguf_version(const struct gguf *gguf);
uint32_t gguf_alignment(const struct gguf *gguf);
uint32_t gguf_parts(const struct gguf *gguf);
const char *gguf_part_path(const struct gguf *gguf, uint32_t part);
uint64_t gguf_file_bytes(const struct gguf *gguf); /* all parts */
/* All parts: map.h. */
ob_status gguf_load(struct gguf *gguf, const struct map_load *load, ob_error *error);
uint64_t gguf_identity(const struct gguf *gguf, uint64_t hash);
size_t gguf_value_count(const struct gguf *gguf);
const struct gguf_value *gguf_value_at(const struct gguf *gguf, size_t i);
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key); /* NULL: absent */
size_t gguf_tensor_count(const struct gguf *gguf);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t i);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *gguf, struct str name);

/* Element i of a value (i = 0 for scalars) in the wanted kind; false if the type does not fit, the
 * value does not (any integer width whose value fits is taken; floats from any number), i >= n, or
 * v is NULL. */
bool gguf_u64(const struct gguf_value *v, uint64_t i, uint64_t *out);
bool gguf_i64(const struct gguf_value *v, uint64_t i, int64_t *out);
bool gguf_f64(const struct gguf_value *v, uint64_t i, double *out);
bool gguf_bool(const struct gguf_value *v, uint64_t i, bool *out);
bool gguf_str(const struct gguf_value *v, uint64_t i, struct str *out);

/* "u32", "str", "array". */
const char *gguf_type_name(enum gguf_type type);

#endif
