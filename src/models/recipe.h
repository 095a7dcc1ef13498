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
    KEY_COUNT,  /* uint32_t: a number, or how many words a list has */
    KEY_F32,    /* float */
    KEY_LAYERS, /* uint32_t *: one a layer; the file has a scalar for all or an array */
    KEY_WHOLE,  /* a number by name (below), whole; true is 1, false 0 */
    KEY_REAL,   /* a number by name */
};
enum need { REQUIRED, OPTIONAL, UNUSED };

struct key {
    const char *gguf;  /* "{arch}.block_count"; NULL = none there */
    const char *hf;    /* path in config.json, alternatives separated by '|'; NULL = none there */
    enum key_type type;
    size_t field;      /* offset in struct hparams; not of numbers by name */
    enum need need;    /* REQUIRED or OPTIONAL */
    double otherwise;  /* value when absent */
    double min, max;   /* inclusive; max 0 = no upper bound but the type's */
    const char *name;  /* of a number that only some families have: for formulas of shapes and
                          build_number() */
};
#define WHOLE(name, gguf, hf, need, otherwise, min, max) \
    {gguf, hf, KEY_WHOLE, 0, need, otherwise, min, max, name}
#define REAL(name, gguf, hf, need, otherwise, min, max) \
    {gguf, hf, KEY_REAL, 0, need, otherwise, min, max, name}

/* ---- tensors ---- */

/* A formula of sizes: sums of products and quotients of hyperparameters' names and whole numbers,
 * from left to right ("heads*k_dim+2*kv_heads*k_dim", "heads*k_dim/4"). Names: those of formula.c,
 * and of keys with a name.
 *
 * A tensor's way from a file's form to the canonical one: steps separated by spaces, in this order.
 *     stack[(n)]  a tensor for each expert, or for each of n parts of a table, "{e}" in its name
 *     experts     one tensor, the experts its outermost dimension (in GGUF always so)
 *     join(n)     a vector in n equal parts, "{e}" in their names
 *     heads(each,start[,count])  a matrix for each head, from one tensor: `each` rows of the file a
 *                 head, of which ours are from `start` on. Comes before T
 *     T           the file has [in, out]
 *     mxfp4       of experts: bytes [rows, cols / 32, 16], in "..._scales" beside them the scales
 *     part(outer,total,start)   of rows seen as [outer, total]: rows [start, start + rows/outer) of
 *                 each; formulas. outer 1 is a view, others are copied
 *     pairs(heads)  rows of each head from halves (i, i + d/2) to pairs (2i, 2i+1)
 *     tile(groups,heads)  rows of each head from group after group (g, j) to one of each group
 *                 after the other (j, g); tile_cols(groups,heads): the same of columns
 *     repeat(n)   each row n times; not together with part or pairs
 *     below(n)    numbers that index n things, I32 or I64: as F32
 *     f32         decoded; vectors always are; with T before it
 *     +1  abs  -exp  neg  exp   by element: w + 1, |w|, -exp(w), -w, exp(w) */
struct tensor {
    const char *name;   /* ours, which is GGUF's unless `gguf` says another; "{i}" is the layer */
    const char *hf;     /* "{m}layers.{i}.self_attn.q_proj.weight", alternatives separated by '|';
                           NULL = none there. {m} is the root, "model." (struct recipe); {s} and
                           {h} are hp.shared_from and hp.shared_use - 1 of the layer */
    const char *rows;   /* formula; NULL: a vector. A tensor does not exist in layers where its
                           shape has a 0 */
    const char *cols;
    enum need need;
    const char *needed;  /* of an OPTIONAL row: a formula, required in layers where it is not 0 */
    const char *from_hf; /* NULL: as it is */
    const char *reason;  /* UNUSED: why it is not needed; then a name may end with '*' */
    const char *gguf, *from_gguf; /* where GGUF has it in another, "blk.{i}.attn_qkv.weight" */
    const char *gguf_key; /* of one number a layer, which GGUF has in this list among its keys */
    const char *gguf_row; /* of a vector that llama.cpp wants in rows: how long they are; of a
                             matrix that it wants in several: how many rows each has */
    bool gguf_again;      /* it wants one in layers, too, that read another's keys: that one's */
};
#define MATRIX(name_, hf_, rows_, cols_, need_, ...) \
    {.name = name_, .hf = hf_, .rows = rows_, .cols = cols_, .need = need_, ##__VA_ARGS__}
#define VECTOR(name_, hf_, n_, need_, ...) \
    {.name = name_, .hf = hf_, .cols = n_, .need = need_, ##__VA_ARGS__}
/* Known and not needed, in either spelling; a name may end with '*'. */
#define KNOWN(gguf_, hf_, why_) {.name = gguf_, .hf = hf_, .need = UNUSED, .reason = why_}
/* Of several rows with one name the first that the file has is taken; one of them is enough: all
 * are REQUIRED. */

/* ---- the recipe ---- */

struct build;

struct recipe {
    const char *family;      /* "qwen2" */
    const char *gguf;        /* general.architecture, NULL = has no GGUF spelling of its own */
    const char *also_gguf;   /* another that files of the family say */
    bool gguf_lists_recurrent; /* which layers are, a list says; else those without key heads */
    const char *written_as;  /* another row's, by whose name llama.cpp reads such models, too */
    const char *model_type;  /* config.json's; further ones, separated by '|', in
                                also_type */
    const char *also_type;
    const char *when;        /* config.json's flag that must be true, "is_decoder": before others of
                                the same type. NULL: none */
    const char *hf_class;    /* "Qwen2ForCausalLM" */
    const char *roots;       /* what "{m}" may stand for, separated by '|'; NULL: the usual */
    const struct key *const *keys;       /* ended by NULL; a table by gguf = hf = NULL */
    const struct tensor *const *tensors; /* likewise; a table by name = NULL */
    bool norms_plus_one;     /* in Hugging Face form norms' weights mean 1 + w: of all rows whose
                                name ends with "_norm.weight" and that have no from_hf */
    const char *act;         /* activation where no key names one; NULL: "silu" */
    const char *act_key;     /* config.json's keys for it; NULL: the usual ones, "": none */
    const char *foreign;     /* config.json's keys, separated by '|', that a table here reads for
                                others and the class does not: as if they were not there */
    bool turns_parts;        /* partial_rotary_factor says how much of a head turns; elsewhere heads
                                turn whole, and other values are refused */
    /* What tables cannot say: ropes, windows, scales. Runs after keys were read. */
    ob_status (*derive)(struct build *b, ob_error *error);
    /* Appends one layer; returns the residual stream. */
    value_id (*layer)(struct build *b, value_id x);
    /* Of encoders, on the last states: what the model's own head says of a sequence (ROWS_SEQS), or
     * NO_VALUE where the file has no head. */
    value_id (*head)(struct build *b, value_id x);
    /* What row r of the weight, or of the vector, with this name in the tables has been multiplied
     * by in GGUF; derive sees to it that the model of such a file multiplies no more. NULL: 1. */
    float (*gguf_factor)(const struct build *b, const char *name, uint32_t r);
    /* Instead of the default: layers 0 .. n-1 in order. */
    value_id (*body)(struct build *b, value_id x);
};

#define KEYS(...) .keys = (const struct key *const[]){__VA_ARGS__, NULL}
#define TENSORS(...) .tensors = (const struct tensor *const[]){__VA_ARGS__, NULL}

struct asked {
    const char *name;
    bool read; /* its value, or its first, as one kind or another */
};

enum { WRONG_MAX = 8, WRONG_KEY = 128, WRONG_TEXT = 128 };
struct wrong {
    uint64_t i; /* of a list */
    char key[WRONG_KEY], text[WRONG_TEXT];
};

struct build {
    struct model *model;
    struct hparams *hp;
    struct graph *g;
    struct arena *arena;
    const struct recipe *recipe;
    const struct source *source;  /* of the tensors */
    const struct source *meta;    /* of the keys: source_meta() */
    struct model_options options;
    struct asked *asked;          /* keys of the source that were asked for */
    uint32_t asked_count, asked_cap;
    struct wrong wrong[WRONG_MAX]; /* keys that are there and of another kind */
    uint32_t wrongs;
    struct str root;              /* what "{m}" stands for in this file */
    uint32_t layer;
    value_id table, table_window; /* rope tables, NO_VALUE until first used */
    struct weight **found;        /* sorted by canonical name */
    uint32_t found_count;
};

/* The weight with the layer's canonical name ("attn_q.weight" is "blk.3.attn_q.weight" in layer
 * 3; outside layers the whole name); NULL if the file lacks it or the recipe does not know it. */
struct weight *build_weight(struct build *b, const char *name);
struct weight *build_global(struct build *b, const char *name);

/* Metadata, in either spelling; paths of config.json, and keys of GGUF, may be alternatives
 * separated by '|', the first that the file has counts, and then the first that has a default in
 * its class (format/hf_defaults.h). What a recipe asks for is remembered: see keys.c on keys that
 * nobody asked for. NULL, 0 or false: there is none (or null), or it is of another kind: no number
 * or an infinite one, a list where one value is wanted. Such a key is remembered, and model_open
 * refuses the model by its name, unless it was read as another kind. */
const char *build_key(struct build *b, const char *gguf, const char *hf, char *scratch,
                      size_t size);
bool build_has(struct build *b, const char *gguf, const char *hf);
/* The file itself has one of them: config.json, and it is no default. */
bool build_says(struct build *b, const char *hf);
uint64_t build_count(struct build *b, const char *gguf, const char *hf); /* elements */
bool build_f32(struct build *b, const char *gguf, const char *hf, float *out);
bool build_u32(struct build *b, const char *gguf, const char *hf, uint32_t *out);
bool build_bool(struct build *b, const char *gguf, const char *hf, bool *out);
bool build_str(struct build *b, const char *gguf, const char *hf, struct str *out);
/* Element i of an array. */
bool build_u64_at(struct build *b, const char *gguf, const char *hf, uint64_t i, uint64_t *out);
bool build_f64_at(struct build *b, const char *gguf, const char *hf, uint64_t i, double *out);
bool build_real_at(struct build *b, const char *gguf, const char *hf, uint64_t i,
                   double *out); /* infinities, too */
bool build_bool_at(struct build *b, const char *gguf, const char *hf, uint64_t i, bool *out);
bool build_str_at(struct build *b, const char *gguf, const char *hf, uint64_t i, struct str *out);

/* A list of another length than n, if there is one, is refused by its name; so is a key for which
 * this was called, where a status cannot be returned. */
void build_wants(struct build *b, const char *gguf, const char *hf, uint64_t n);
void build_wrong(struct build *b, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As config.json spells activations: "gelu_new". */
bool build_act_named(struct str name, enum act_kind *out);

/* A number that a key row names; it must have been declared. build_set makes or changes one. */
double build_number(const struct build *b, const char *name);
uint32_t build_whole(const struct build *b, const char *name);
ob_status build_set(struct build *b, const char *name, double value, ob_error *error);

/* A boolean; *io stays as it is where the source has none. Another kind of value is refused. */
ob_status build_flag(struct build *b, const char *gguf, const char *hf, bool *io, ob_error *error);

/* A class reads one of a key's names; a file that has two, and says two things, is refused. */
ob_status build_agree(struct build *b, const char *names, ob_error *error);
/* Null, at one of these names, is refused: it means something else than a key that is absent. */
ob_status build_not_null(struct build *b, const char *names, ob_error *error);

/* Keys that may ask for what a recipe does not compute: a value other than these two is refused,
 * true being 1 and false 0.
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
