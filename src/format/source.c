/* SPDX-License-Identifier: Apache-2.0
 *
 * source.c: one view of a model on disk, over a GGUF set or a Hugging Face directory. */
#include "format/source.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os.h"

enum { KEY_MAX = 256 };

struct source {
    enum source_kind kind;
    struct arena arena;
    char *path;
    struct gguf *gguf;
    struct str architecture, class_name;
    struct source_tensor *tensor;
    size_t tensors;
};

static ob_status open_gguf(struct source *source, ob_error *error) {
    ob_status status = gguf_open(source->path, &source->gguf, error);
    if (status != OB_OK) return status;
    const char *key = "general.architecture";
    if (!gguf_str(gguf_find(source->gguf, key), 0, &source->architecture) ||
        source->architecture.n == 0) {
        status = error_set(error, OB_ERR_FORMAT, "the file does not name an architecture");
        error_at(error, source->path, key, OB_NO_OFFSET);
        return status;
    }
    source->tensors = gguf_tensor_count(source->gguf);
    source->tensor = arena_array(&source->arena, source->tensors, sizeof *source->tensor);
    if (!source->tensor)
        return error_memory(error, "tensors", source->tensors * sizeof *source->tensor);
    for (size_t i = 0; i < source->tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(source->gguf, i);
        source->tensor[i] = (struct source_tensor){
            .name = t->name, .quant = t->quant, .ndim = t->ndim, .data = t->data, .bytes = t->bytes};
        memcpy(source->tensor[i].dim, t->dim, sizeof t->dim);
    }
    return OB_OK;
}

ob_status source_open(const char *path, struct source **out, ob_error *error) {
    struct source *source = *out = calloc(1, sizeof *source);
    if (!source) return error_memory(error, "a model", sizeof *source);
    source->path = arena_copy(&source->arena, path, strlen(path));
    ob_status status;
    if (!source->path) {
        status = error_memory(error, "a path", strlen(path));
    } else if (os_is_dir(path)) {
        status = error_set(error, OB_ERR_UNSUPPORTED, "is a directory");
        error_at(error, path, NULL, OB_NO_OFFSET);
    } else {
        source->kind = SOURCE_GGUF;
        status = open_gguf(source, error);
    }
    if (status != OB_OK) source_close(out);
    return status;
}

void source_close(struct source **source) {
    if (!*source) return;
    gguf_close(&(*source)->gguf);
    arena_free(&(*source)->arena);
    free(*source);
    *source = NULL;
}

enum source_kind source_kind(const struct source *source) { return source->kind; }
const char *source_path(const struct source *source) { return source->path; }
const struct gguf *source_gguf(const struct source *source) { return source->gguf; }
struct str source_architecture(const struct source *source) { return source->architecture; }
struct str source_class(const struct source *source) { return source->class_name; }
uint64_t source_bytes(const struct source *source) { return gguf_file_bytes(source->gguf); }

/* ---- tensors --------------------------------------------------------------------------------- */

size_t source_tensor_count(const struct source *source) { return source->tensors; }
const struct source_tensor *source_tensor_at(const struct source *source, size_t i) {
    return &source->tensor[i];
}
const struct source_tensor *source_tensor_find(const struct source *source, struct str name) {
    const struct gguf_tensor *t = gguf_tensor_find(source->gguf, name);
    return t ? &source->tensor[t - gguf_tensor_at(source->gguf, 0)] : NULL;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* The value of `key`, where "{arch}" stands for the architecture; NULL if absent. */
static const struct gguf_value *lookup(const struct source *source, const char *key) {
    const char *mark = strstr(key, "{arch}");
    if (!mark) return gguf_find(source->gguf, key);
    char full[KEY_MAX];
    int n = snprintf(full, sizeof full, "%.*s%.*s%s", (int)(mark - key), key,
                     STR_ARG(source->architecture), mark + strlen("{arch}"));
    return n < KEY_MAX ? gguf_find(source->gguf, full) : NULL;
}

bool source_has(const struct source *source, const char *key) {
    return lookup(source, key) != NULL;
}
uint64_t source_count(const struct source *source, const char *key) {
    const struct gguf_value *v = lookup(source, key);
    return v ? v->n : 0;
}
bool source_u64(const struct source *source, const char *key, uint64_t i, uint64_t *out) {
    return gguf_u64(lookup(source, key), i, out);
}
bool source_f64(const struct source *source, const char *key, uint64_t i, double *out) {
    return gguf_f64(lookup(source, key), i, out);
}
bool source_bool(const struct source *source, const char *key, uint64_t i, bool *out) {
    return gguf_bool(lookup(source, key), i, out);
}
bool source_str(const struct source *source, const char *key, uint64_t i, struct str *out) {
    return gguf_str(lookup(source, key), i, out);
}
