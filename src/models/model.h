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
    struct str *unused;          /* tensors known but not needed, with the reason: "name: reason" */
    uint32_t unused_count;
};

/* Checks everything before the first token. The error names file, key or tensor. */
ob_status model_open(const struct source *source, struct model **out, ob_error *error);
void model_close(struct model **model);

const char *model_family(const struct model *model);

/* Name of the first weight with a NaN or an infinity in it, NULL if all are finite. Decodes every
 * weight: seconds for a large model. */
const char *model_find_nonfinite(const struct model *model);

/* The recipe a source would get, or an error naming its architecture and listing those known. */
ob_status model_find(const struct source *source, const struct recipe **out, ob_error *error);

/* Refuses cache formats whose blocks do not divide the model's head sizes. */
ob_status model_check_kv(const struct model *model, struct kv_types types, ob_error *error);

/* KV cache bytes for `tokens` positions of one sequence in formats that model_check_kv takes: whole
 * pages; window layers stop growing at their window. */
uint64_t model_kv_bytes(const struct model *model, uint64_t tokens, struct kv_types types);

#endif
