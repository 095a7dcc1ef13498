/* SPDX-License-Identifier: Apache-2.0
 * load.h: the steps of model_open, between model.c, keys.c and tensors.c. */
#ifndef MODELS_LOAD_H
#define MODELS_LOAD_H

#include <string.h>

#include "models/recipe.h"

/* Fills b->hp from the recipe's keys. */
ob_status load_keys(struct build *b, ob_error *error);
/* Refuses the first key that was found to be of another kind than wanted (build_wrong), which
 * explains whatever else failed so far. */
ob_status check_kinds(struct build *b, ob_status so_far, ob_error *error);
/* Refuses keys that change the mathematics and were not read; once all was read. */
ob_status check_unread(struct build *b, ob_error *error);
/* Refuses a 0 of config.json where we would take it for "none". */
ob_status check_zeros(struct build *b, ob_error *error);
/* Refuses words of layer_types and its like that say another thing than is computed. */
ob_status check_words(struct build *b, ob_error *error);
/* The root of the tensors' names, and the size of the vocabulary, from the embedding's tensor. */
ob_status load_vocab(struct build *b, ob_error *error);
/* Finds, checks and, where needed, transforms every tensor of the recipe into b->found; refuses
 * tensors of the file that the recipe does not know. */
ob_status load_tensors(struct build *b, ob_error *error);
/* The recipe's tables of tensors, and what any model may have; NULL after the last. */
const struct tensor *recipe_table(const struct recipe *recipe, size_t n);
/* Of this row only floats are read: vectors, routers, what a recurrent op wants. */
bool tensor_stays_float(const struct tensor *t, const char *name);
/* Does the row's size have a 0 in this layer? */
struct transform;
bool tensor_is_nowhere(const struct build *b, const struct tensor *t, const struct transform *how,
                       uint32_t layer);

#endif
