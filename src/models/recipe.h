/* SPDX-License-Identifier: Apache-2.0
 *
 * recipe.h: what a model file declares: the keys and tensors of its family in GGUF and in Hugging
 * Face spelling, and how a layer is composed from blocks. */
#ifndef MODELS_RECIPE_H
#define MODELS_RECIPE_H

#include <stddef.h>

#include "models/model.h"

/* ---- keys ---- */

enum key_type {
    KEY_U32,    /* uint32_t */
    KEY_F32,    /* float */
    KEY_LAYERS, /* uint32_t *: one a layer; the file has a scalar for all or an array */
};
enum need { REQUIRED, OPTIONAL, UNUSED };

struct key {
    const char *gguf;  /* "{arch}.block_count"; NULL = none there */
    const char *hf;    /* path in config.json, alternatives separated by '|'; NULL = none there */
    enum key_type type;
    size_t field;      /* offset in struct hparams */
    enum need need;    /* REQUIRED or OPTIONAL */
    double otherwise;  /* value when absent */
    double min, max;   /* inclusive; max 0 = no upper bound but the type's */
};

/* ---- tensors ---- */

/* From the Hugging Face form to the canonical one, which is what llama.cpp's converters write. */
enum from_hf {
    AS_IS,
    ADD_ONE,    /* norms whose weight means 1 + w */
    PERMUTE_Q,  /* rows of each head from halves (i, i + d/2) to pairs (2i, 2i+1) */
    PERMUTE_K,
    STACK,      /* a matrix for each expert: in GGUF one tensor [experts, rows, cols], in Hugging
                   Face form as many as experts, "{e}" in their name */
};

struct tensor {
    const char *name;   /* GGUF, "{i}" is the layer: "blk.{i}.attn_q.weight" */
    const char *hf;     /* "model.layers.{i}.self_attn.q_proj.weight"; NULL = none there */
    const char *rows;   /* product of hyperparameter names, "heads*k_dim"; NULL: a vector. A tensor
                           does not exist in layers where one is 0 */
    const char *cols;
    enum need need;
    enum from_hf from_hf;
    const char *reason; /* UNUSED: why it is not needed */
};

/* ---- the recipe ---- */

struct build;

struct recipe {
    const char *family;      /* "qwen2" */
    const char *gguf;        /* general.architecture, NULL = has no GGUF spelling of its own */
    const char *model_type;  /* config.json's; further ones in also_type */
    const char *also_type;
    const char *hf_class;    /* "Qwen2ForCausalLM" */
    const struct key *const *keys;       /* ended by NULL; a table by gguf = hf = NULL */
    const struct tensor *const *tensors; /* likewise; a table by name = NULL */
    const char *act;         /* the activation's names in config.json, '|' between; checked */
    /* What tables cannot say: ropes, windows, scales. Runs after keys were read. */
    ob_status (*derive)(struct build *b, ob_error *error);
    /* Appends one layer; returns the residual stream. */
    value_id (*layer)(struct build *b, value_id x);
};

struct build {
    struct model *model;
    struct hparams *hp;
    struct graph *g;
    struct arena *arena;
    const struct recipe *recipe;
    const struct source *source;
    uint32_t layer;
    value_id table, table_window; /* rope tables, NO_VALUE until first used */
    struct weight **found;        /* sorted by canonical name */
    uint32_t found_count;
};

/* The weight with the layer's canonical name ("attn_q.weight" is "blk.3.attn_q.weight" in layer
 * 3; outside layers the whole name); NULL if the file lacks it or the recipe does not know it. */
struct weight *build_weight(struct build *b, const char *name);
struct weight *build_global(struct build *b, const char *name);

/* First of '|'-separated paths that the source has, in this source's spelling; NULL if none. */
const char *build_key(struct build *b, const char *gguf, const char *hf, char *scratch,
                      size_t size);
bool build_f32(struct build *b, const char *gguf, const char *hf, float *out);
bool build_u32(struct build *b, const char *gguf, const char *hf, uint32_t *out);
bool build_str(struct build *b, const char *gguf, const char *hf, struct str *out);

/* A boolean; *io stays as it is where the source has none. Another kind of value is refused. */
ob_status build_flag(struct build *b, const char *gguf, const char *hf, bool *io, ob_error *error);

/* Keys that may ask for what a recipe does not compute: a value other than these two is refused.
 * The list ends with gguf = hf = NULL. */
struct plain {
    const char *gguf, *hf;
    double value, also;
    const char *what; /* "a scale of the experts' weights" */
};
ob_status build_plain(struct build *b, const struct plain *list, ob_error *error);

/* An error at a key or tensor, by the name that this source's spelling has for it ("{arch}" filled
 * in; the first of '|'-separated paths). Returns status. */
ob_status build_refuse(const struct build *b, ob_status status, const char *gguf, const char *hf,
                       ob_error *error, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

extern const struct recipe *const recipe_list[];
extern const size_t recipe_count;

#endif
