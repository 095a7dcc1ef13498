/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h: a model on disk, whatever its spelling: a GGUF file, or a Hugging Face directory
 * (config.json + safetensors). Recipes ask for metadata by key and for tensors by name in the
 * spelling of the source's kind. Immutable after open, so thread safe. */
#ifndef FORMAT_SOURCE_H
#define FORMAT_SOURCE_H

#include "base/str.h"
#include "format/gguf.h"
#include "onebit.h"

enum source_kind { SOURCE_GGUF, SOURCE_HF };

struct source;

struct source_tensor {
    struct str name;
    struct str type;    /* as the file spells it */
    const struct quant *quant; /* NULL for types that are no weight format of ours: who needs the
                                * tensor refuses it by name and `type` */
    uint32_t ndim;      /* 1-4 */
    uint64_t dim[4];    /* dim[0] is the row length (the last in safetensors); unused are 1 */
    const void *data;   /* mapped; rows contiguous, any alignment */
    size_t bytes;
};

/* path: a .gguf (any part of a split set) or a directory. The error names what is wrong with it. */
ob_status source_open(const char *path, struct source **out, ob_error *error);
void source_close(struct source **source);

enum source_kind source_kind(const struct source *source);
const char *source_path(const struct source *source);
/* What describes the model: the source itself, but of a GGUF file that carries a config.json
 * (SOURCE_CONFIG_KEY, as `1bit convert` writes it) one of kind SOURCE_HF, which has that file's
 * keys and no tensors. It lives as long as the source. */
const struct source *source_meta(const struct source *source);
#define SOURCE_CONFIG_KEY "1bit.config"
/* The text of config.json; n = 0 if there is none. */
struct str source_config_text(const struct source *source);
/* The GGUF behind it, NULL for other kinds. */
const struct gguf *source_gguf(const struct source *source);
/* "qwen2": general.architecture, or model_type of config.json. */
struct str source_architecture(const struct source *source);
/* Of config.json: the model type of the language model, which text_config has or which is the one
 * that its model type has inside; "" where nobody knows. */
struct str source_text_type(const struct source *source);
/* First entry of config.json's "architectures"; "" for GGUF. */
struct str source_class(const struct source *source);
uint64_t source_bytes(const struct source *source);
/* Tells its weights from those of other sources, and from what the files held at another time;
 * says nothing of where they are (map_identity). */
uint64_t source_identity(const struct source *source);

/* Brings the weights into memory (map.h), with progress in bytes of all files. What
 * tensors point to stays, but nobody may read it meanwhile. Files that do not fit the free memory
 * are not read ahead; to copy or lock them is OB_ERR_LIMIT. */
struct source_load {
    bool copy, lock;
    void (*progress)(void *user, uint64_t done, uint64_t total); /* may be NULL */
    void *user;
};
ob_status source_load(const struct source *source, const struct source_load *load,
                      ob_error *error);
/* A whole file beside config.json ("generation_config.json"), terminated, malloc'd.
 * OB_ERR_NOT_FOUND when there is none, always for GGUF; error may be NULL to ask quietly. */
ob_status source_file(const struct source *source, const char *name, char **text, size_t *n,
                      ob_error *error);

size_t source_tensor_count(const struct source *source);
const struct source_tensor *source_tensor_at(const struct source *source, size_t i);
const struct source_tensor *source_tensor_find(const struct source *source, struct str name);

/* Metadata. `key` is a GGUF key, where "{arch}" stands for the architecture, or a path in
 * config.json ("rope_parameters.full_attention.rope_theta"), looked for under "text_config" and
 * then at the top, and then among the defaults of its model type. A scalar has n = 1; element i of
 * an array (HF: JSON array) may be asked for. false: absent, null or of another kind. */
bool source_has(const struct source *source, const char *key);
/* The file itself has it: of config.json that it is no default, which source_has gives, too. */
bool source_says(const struct source *source, const char *key);
/* Of config.json: the first key that is null where its class has a default and takes no null; NULL:
 * there is none. */
const char *source_wrong_null(const struct source *source);
/* Of config.json: the key is there, and null. */
bool source_null(const struct source *source, const char *key);
/* Bytes of the part of a path of config.json that is there and no object, so that nothing can be in
 * it; 0: none. */
size_t source_blocked(const struct source *source, const char *key);
uint64_t source_count(const struct source *source, const char *key); /* elements; 0 if absent */
bool source_u64(const struct source *source, const char *key, uint64_t i, uint64_t *out);
bool source_f64(const struct source *source, const char *key, uint64_t i, double *out);
bool source_bool(const struct source *source, const char *key, uint64_t i, bool *out);
bool source_str(const struct source *source, const char *key, uint64_t i, struct str *out);
/* Of config.json: the paths of all keys at the top and under "text_config", and inside objects
 * whose name begins with "rope_", whose value is not null, false, 0, 1, or empty. Nothing for
 * GGUF. */
void source_each_key(const struct source *source, void (*fn)(void *user, struct str path),
                     void *user);

#endif
