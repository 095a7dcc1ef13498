/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: a loaded model: its source read through a recipe into hyperparameters, canonical weights
 * and the graph of one step. A recipe (recipe.h) knows a family; this knows what all have in
 * common: every required key and tensor present, every shape as the recipe says, every tensor of
 * the file known. Nothing here knows a device. Immutable after model_open but for weight.bound. */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "base/arena.h"
#include "format/source.h"
#include "graph/graph.h"
#include "models/hparams.h"
#include "onebit.h"
#include "quant/kv.h"

struct recipe;

struct model {
    struct arena arena;          /* of everything below but the source */
    const struct source *source; /* borrowed: outlives the model */
    const struct recipe *recipe;
    struct hparams hp;
    struct graph graph;
    struct weight **weight;      /* every weight the graph uses, once */
    uint32_t weights;
    uint64_t parameters, weight_bytes;
    uint64_t active_parameters;  /* without the experts that a token does not use */
    uint64_t copied_bytes;       /* of tensors that had to be transformed into the canonical form */
    uint32_t copied;
    const char *packing;         /* how the file has matrices packed: "gptq, 4 bits"; "": not */
    struct str *unused;          /* tensors known but not needed, with the reason: "name: reason" */
    uint32_t unused_count;
};

struct model_options {
    /* Not NULL: matrices of floats (F32, F16, BF16) are converted into this format, which must have
     * an encoder, while they are read; not those whose rows are no whole blocks, nor norms, biases,
     * routers and what recurrent layers read as floats. */
    const struct quant *weights;
    /* Nothing will be computed: matrices that would be converted or unpacked have no data. */
    bool plan;
};
/* Checks everything before the first token. The error names file, key or tensor. options NULL: all
 * as the files have it. */
ob_status model_open(const struct source *source, const struct model_options *options,
                     struct model **out, ob_error *error);
void model_close(struct model **model);

/* Columns of a row of graph.logits: the vocabulary, or the width of an encoder's states. */
uint32_t model_output_cols(const struct model *model);
/* Does it write text? Encoders only read. */
bool model_generates(const struct model *model);
/* Numbers of the vector that it embeds a text as, 0: it cannot. */
uint32_t model_embedding_cols(const struct model *model);

const char *model_family(const struct model *model);

/* Name of the first weight with a NaN or an infinity in it, NULL if all are finite. Decodes every
 * weight: seconds for a large model. */
const char *model_find_nonfinite(const struct model *model);

/* The recipe a source would get, or an error naming its architecture and listing those known. */
ob_status model_find(const struct source *source, const struct recipe **out, ob_error *error);

/* Positions a sequence can have: the rows of a table of positions, or what the recipe limits; else
 * UINT32_MAX, whatever the context of training was. */
uint32_t model_positions(const struct model *model);

/* Refuses cache formats whose blocks do not divide the model's head sizes. */
ob_status model_check_kv(const struct model *model, struct kv_types types, ob_error *error);

/* KV cache bytes for `tokens` positions of one sequence in formats that model_check_kv takes: whole
 * pages; window layers stop growing at their window; recurrent layers have their state, in F32, at
 * any length. */
uint64_t model_kv_bytes(const struct model *model, uint64_t tokens, struct kv_types types);

#endif
