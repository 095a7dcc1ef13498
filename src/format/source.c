/* SPDX-License-Identifier: Apache-2.0
 *
 * source.c: one view of a model on disk, over a GGUF set or a Hugging Face directory. The tensor
 * list runs parallel to the underlying reader's, so that its search serves here too. */
#include "format/source.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os.h"
#include "format/hf_config.h"
#include "format/hf_modules.h"
#include "format/safetensors.h"

enum { KEY_MAX = 256, FILE_MAX = 1 << 28 };

struct source {
    enum source_kind kind;
    struct arena arena;
    char *path;
    struct gguf *gguf;         /* SOURCE_GGUF */
    struct hf_config *config;  /* SOURCE_HF */
    struct str config_text;
    struct source *meta;       /* of a GGUF with a config.json inside; NULL: the source itself */
    struct safetensors *weights;
    struct safetensors *dense[HF_DENSE_MAX]; /* of the layers that modules.json names */
    struct str architecture, class_name;
    struct source_tensor *tensor;
    size_t tensors;
};

static ob_status new_tensors(struct source *source, size_t n, ob_error *error) {
    source->tensors = n;
    source->tensor = arena_array(&source->arena, n, sizeof *source->tensor);
    return source->tensor ? OB_OK : error_memory(error, "tensors", n * sizeof *source->tensor);
}

/* The configuration from config.json's text, which the arena holds. */
static ob_status parse_config(struct source *source, const char *path, ob_error *error) {
    struct str text = source->config_text;
    ob_status status = hf_config_open(text.p, text.n, path, &source->config, error);
    if (status != OB_OK) return status;
    if (!hf_config_str(source->config, "/model_type", 0, &source->architecture) ||
        source->architecture.n == 0) {
        status = error_set(error, OB_ERR_FORMAT, "the file does not name a model type");
        error_at(error, path, "model_type", OB_NO_OFFSET);
        return status;
    }
    hf_config_str(source->config, "/architectures", 0, &source->class_name);
    return OB_OK;
}

/* A GGUF file may carry the config.json that it was made from. */
static ob_status open_meta(struct source *source, ob_error *error) {
    struct str text;
    if (!gguf_str(gguf_find(source->gguf, SOURCE_CONFIG_KEY), 0, &text)) return OB_OK;
    struct source *meta = source->meta = calloc(1, sizeof *meta);
    if (!meta) return error_memory(error, "a configuration", sizeof *meta);
    meta->kind = SOURCE_HF;
    meta->config_text = text;
    meta->path = arena_copy(&meta->arena, source->path, strlen(source->path));
    if (!meta->path) return error_memory(error, "a path", strlen(source->path));
    return parse_config(meta, source->path, error);
}

/* Files of a directory are no models alone. */
static bool is_part(const char *path) {
    size_t n = strlen(path);
    return (n > 12 && strcmp(path + n - 12, ".safetensors") == 0) ||
           (n > 5 && strcmp(path + n - 5, ".json") == 0);
}

static ob_status open_gguf(struct source *source, ob_error *error) {
    if (is_part(source->path)) {
        ob_status s = error_set(error, OB_ERR_FORMAT, "is a file of a model: name its directory");
        error_at(error, source->path, NULL, OB_NO_OFFSET);
        return s;
    }
    const char *key = "general.architecture";
    ob_status status = gguf_open(source->path, &source->gguf, error);
    if (status != OB_OK) return status;
    if (!gguf_str(gguf_find(source->gguf, key), 0, &source->architecture) ||
        source->architecture.n == 0) {
        status = error_set(error, OB_ERR_FORMAT, "the file does not name an architecture");
        error_at(error, source->path, key, OB_NO_OFFSET);
        return status;
    }
    status = new_tensors(source, gguf_tensor_count(source->gguf), error);
    for (size_t i = 0; i < source->tensors && status == OB_OK; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(source->gguf, i);
        source->tensor[i] = (struct source_tensor){
            .name = t->name, .type = str_of(t->type), .quant = t->quant, .ndim = t->ndim,
            .data = t->data, .bytes = t->bytes};
        memcpy(source->tensor[i].dim, t->dim, sizeof t->dim);
    }
    return status == OB_OK ? open_meta(source, error) : status;
}

static ob_status open_config(struct source *source, ob_error *error) {
    char *text;
    size_t n;
    ob_status status = source_file(source, "config.json", &text, &n, error);
    if (status == OB_ERR_NOT_FOUND) {
        const char *modules = arena_printf(&source->arena, "%s/modules.json", source->path);
        bool beside = modules && os_is_file(modules);
        error_set(error, status, "the directory has no config.json%s",
                  beside ? "; a model in a folder of its own beside modules.json is not supported"
                         : "");
        error_at(error, source->path, NULL, OB_NO_OFFSET);
    }
    if (status != OB_OK) return status;
    char *path = arena_printf(&source->arena, "%s/config.json", source->path);
    source->config_text = (struct str){arena_copy(&source->arena, text, n), n};
    free(text);
    if (!path || !source->config_text.p) return error_memory(error, "a configuration", n);
    return parse_config(source, path, error);
}

/* Weights of the dense layers behind a pooling, each in a folder of its own. What is wrong with
 * modules.json is for those to say who embed. */
static ob_status open_dense(struct source *source, ob_error *error) {
    struct hf_modules modules;
    ob_status status = OB_OK;
    if (hf_modules_read(source, &modules, NULL) != OB_OK) return OB_OK;
    for (uint32_t i = 0; i < modules.denses && status == OB_OK; i++) {
        const char *path = arena_printf(&source->arena, "%s/%s", source->path,
                                        modules.dense[i].folder);
        status = path ? safetensors_open(path, &source->dense[i], error)
                      : error_memory(error, "a path", HF_FOLDER);
    }
    return status;
}

static struct source_tensor from_safetensors(const struct safetensors_tensor *t) {
    struct source_tensor out = {.name = t->name, .type = t->dtype, .quant = t->quant,
                                .ndim = t->ndim, .data = t->data, .bytes = t->bytes};
    memcpy(out.dim, t->dim, sizeof t->dim);
    return out;
}

/* "linear.weight" of the first dense layer is "dense_2.weight", as in GGUF files. */
static ob_status name_dense(struct source *source, struct source_tensor *t, int which,
                            ob_error *error) {
    static const char theirs[] = "linear.";
    size_t skip = str_starts(t->name, theirs) ? sizeof theirs - 1 : 0;
    const char *name = arena_printf(&source->arena, "dense_%d.%.*s", which + 2,
                                    (int)(t->name.n - skip), t->name.p + skip);
    if (!name) return error_memory(error, "a name", t->name.n);
    t->name = str_of(name);
    return OB_OK;
}

static ob_status open_directory(struct source *source, ob_error *error) {
    ob_status status = open_config(source, error);
    if (status == OB_OK) status = safetensors_open(source->path, &source->weights, error);
    if (status == OB_OK) status = open_dense(source, error);
    if (status != OB_OK) return status;
    size_t count = safetensors_tensor_count(source->weights), at = count;
    for (int i = 0; i < HF_DENSE_MAX; i++)
        if (source->dense[i]) count += safetensors_tensor_count(source->dense[i]);
    status = new_tensors(source, count, error);
    for (size_t i = 0; i < at && status == OB_OK; i++)
        source->tensor[i] = from_safetensors(safetensors_tensor_at(source->weights, i));
    for (int i = 0; i < HF_DENSE_MAX && source->dense[i]; i++)
        for (size_t k = 0; status == OB_OK && k < safetensors_tensor_count(source->dense[i]); k++) {
            source->tensor[at] = from_safetensors(safetensors_tensor_at(source->dense[i], k));
            status = name_dense(source, &source->tensor[at++], i, error);
        }
    return status;
}

ob_status source_open(const char *path, struct source **out, ob_error *error) {
    struct source *source = *out = calloc(1, sizeof *source);
    if (!source) return error_memory(error, "a model", sizeof *source);
    source->path = arena_copy(&source->arena, path, strlen(path));
    source->kind = os_is_dir(path) ? SOURCE_HF : SOURCE_GGUF;
    ob_status status = !source->path              ? error_memory(error, "a path", strlen(path))
                       : source->kind == SOURCE_HF ? open_directory(source, error)
                                                   : open_gguf(source, error);
    if (status != OB_OK) source_close(out);
    return status;
}

void source_close(struct source **source) {
    if (!*source) return;
    source_close(&(*source)->meta);
    gguf_close(&(*source)->gguf);
    safetensors_close(&(*source)->weights);
    for (int i = 0; i < HF_DENSE_MAX; i++) safetensors_close(&(*source)->dense[i]);
    hf_config_close(&(*source)->config);
    arena_free(&(*source)->arena);
    free(*source);
    *source = NULL;
}

enum source_kind source_kind(const struct source *source) { return source->kind; }
const char *source_path(const struct source *source) { return source->path; }
const struct source *source_meta(const struct source *source) {
    return source->meta ? source->meta : source;
}
struct str source_config_text(const struct source *source) {
    return source_meta(source)->config_text;
}
const struct gguf *source_gguf(const struct source *source) { return source->gguf; }
struct str source_architecture(const struct source *source) { return source->architecture; }
struct str source_text_type(const struct source *source) {
    return source->config ? hf_config_text_type(source->config) : (struct str){"", 0};
}
struct str source_class(const struct source *source) { return source->class_name; }

uint64_t source_bytes(const struct source *source) {
    if (source->gguf) return gguf_file_bytes(source->gguf);
    uint64_t bytes = safetensors_file_bytes(source->weights);
    for (int i = 0; i < HF_DENSE_MAX && source->dense[i]; i++)
        bytes += safetensors_file_bytes(source->dense[i]);
    return bytes;
}

uint64_t source_identity(const struct source *source) {
    if (source->gguf) return gguf_identity(source->gguf, 0);
    uint64_t hash = safetensors_identity(source->weights, 0);
    for (int i = 0; i < HF_DENSE_MAX && source->dense[i]; i++)
        hash = safetensors_identity(source->dense[i], hash);
    return hash;
}

struct loading { const struct source_load *load; uint64_t done, total; };

static void add_progress(void *user, size_t bytes) {
    struct loading *loading = user;
    const struct source_load *load = loading->load;
    loading->done += bytes;
    if (load->progress) load->progress(load->user, loading->done, loading->total);
}

ob_status source_load(const struct source *source, const struct source_load *load,
                      ob_error *error) {
    struct loading loading = {.load = load, .total = source_bytes(source)};
    uint64_t available = os_memory_available();
    bool fits = loading.total <= available;
    struct map_load each = {.copy = load->copy, .lock = load->lock, .read_ahead = fits,
                            .progress = add_progress, .user = &loading};
    if ((load->copy || load->lock) && !fits) {
        error_set(error, OB_ERR_LIMIT,
                  "its %llu MiB do not fit the %llu MiB of memory that are free",
                  (unsigned long long)loading.total >> 20, (unsigned long long)available >> 20);
        error_at(error, source->path, NULL, OB_NO_OFFSET);
        return OB_ERR_LIMIT;
    }
    if (source->gguf) return gguf_load(source->gguf, &each, error);
    ob_status s = safetensors_load(source->weights, &each, error);
    for (int i = 0; s == OB_OK && i < HF_DENSE_MAX && source->dense[i]; i++)
        s = safetensors_load(source->dense[i], &each, error);
    return s;
}

ob_status source_file(const struct source *source, const char *name, char **text, size_t *n,
                      ob_error *error) {
    *text = NULL;
    *n = 0;
    if (source->kind != SOURCE_HF) {
        error_set(error, OB_ERR_NOT_FOUND, "a GGUF file has no other files");
        error_at(error, source->path, name, OB_NO_OFFSET);
        return OB_ERR_NOT_FOUND;
    }
    size_t size = strlen(source->path) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) return error_memory(error, "a path", size);
    snprintf(path, size, "%s/%s", source->path, name);
    ob_status status = os_read_file(path, FILE_MAX, text, n, error);
    free(path);
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

size_t source_tensor_count(const struct source *source) { return source->tensors; }

const struct source_tensor *source_tensor_at(const struct source *source, size_t i) {
    return &source->tensor[i];
}

const struct source_tensor *source_tensor_find(const struct source *source, struct str name) {
    if (source->gguf) {
        const struct gguf_tensor *t = gguf_tensor_find(source->gguf, name);
        return t ? &source->tensor[t - gguf_tensor_at(source->gguf, 0)] : NULL;
    }
    const struct safetensors_tensor *t = safetensors_tensor_find(source->weights, name);
    if (t) return &source->tensor[t - safetensors_tensor_at(source->weights, 0)];
    for (size_t i = safetensors_tensor_count(source->weights); i < source->tensors; i++)
        if (str_eq(source->tensor[i].name, name)) return &source->tensor[i];
    return NULL;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* The GGUF value of `key`, where "{arch}" stands for the architecture; NULL if absent. */
static const struct gguf_value *lookup(const struct source *source, const char *key) {
    const char *mark = strstr(key, "{arch}");
    if (!mark) return gguf_find(source->gguf, key);
    char full[KEY_MAX];
    int n = snprintf(full, sizeof full, "%.*s%.*s%s", (int)(mark - key), key,
                     STR_ARG(source->architecture), mark + strlen("{arch}"));
    return n < KEY_MAX ? gguf_find(source->gguf, full) : NULL;
}

bool source_null(const struct source *s, const char *key) {
    return s->config && hf_config_null(s->config, key);
}

bool source_has(const struct source *s, const char *key) {
    return s->config ? hf_config_has(s->config, key) : lookup(s, key) != NULL;
}

bool source_says(const struct source *s, const char *key) {
    return s->config ? hf_config_says(s->config, key) : source_has(s, key);
}

const char *source_wrong_null(const struct source *s) {
    return s->config ? hf_config_wrong_null(s->config) : NULL;
}

size_t source_blocked(const struct source *s, const char *key) {
    return s->config ? hf_config_blocked(s->config, key) : 0;
}

uint64_t source_count(const struct source *s, const char *key) {
    if (s->config) return hf_config_count(s->config, key);
    const struct gguf_value *v = lookup(s, key);
    return v ? v->n : 0;
}

bool source_u64(const struct source *s, const char *key, uint64_t i, uint64_t *out) {
    return s->config ? hf_config_u64(s->config, key, i, out) : gguf_u64(lookup(s, key), i, out);
}

bool source_f64(const struct source *s, const char *key, uint64_t i, double *out) {
    return s->config ? hf_config_f64(s->config, key, i, out) : gguf_f64(lookup(s, key), i, out);
}

bool source_bool(const struct source *s, const char *key, uint64_t i, bool *out) {
    return s->config ? hf_config_bool(s->config, key, i, out) : gguf_bool(lookup(s, key), i, out);
}

bool source_str(const struct source *s, const char *key, uint64_t i, struct str *out) {
    return s->config ? hf_config_str(s->config, key, i, out) : gguf_str(lookup(s, key), i, out);
}

void source_each_key(const struct source *s, void (*fn)(void *user, struct str path), void *user) {
    if (s->config) hf_config_each(s->config, fn, user);
}
