/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_part.h: one file of a GGUF set, parsed on its own. Only gguf.c and gguf_part.c use it. */
#ifndef FORMAT_GGUF_PART_H
#define FORMAT_GGUF_PART_H

#include "base/arena.h"
#include "base/map.h"
#include "format/gguf.h"

struct gguf_part {
    struct map map;     /* zeroed when the bytes are borrowed */
    const uint8_t *p;
    size_t size;
    const char *path;
    uint32_t version;
    uint32_t alignment;
    uint64_t data_at;   /* offset of the tensor data in the file */
    struct gguf_value *value; /* file order; keys are unique */
    const struct gguf_value **by_key; /* the same, sorted */
    size_t values;
    struct gguf_tensor *tensor; /* file order; names may repeat, gguf.c looks over all parts */
    size_t tensors;
};

/* Parses and checks p[0..size), whose path is set. Arrays go into the arena. */
ob_status gguf_part_parse(struct gguf_part *part, struct arena *arena, ob_error *error);

const struct gguf_value *gguf_part_find(const struct gguf_part *part, struct str key);

/* Bytes of a value of a fixed-size type, 0 for strings and arrays. */
size_t gguf_width(enum gguf_type type);

#endif
