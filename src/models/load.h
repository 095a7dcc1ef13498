/* SPDX-License-Identifier: Apache-2.0
 * load.h: the steps of model_open, between model.c, keys.c and tensors.c. */
#ifndef MODELS_LOAD_H
#define MODELS_LOAD_H

#include <string.h>

#include "models/recipe.h"

/* Fills b->hp from the recipe's keys. */
ob_status load_keys(struct build *b, ob_error *error);
/* Finds, checks and, where needed, transforms every tensor of the recipe into b->found; refuses
 * tensors of the file that the recipe does not know. */
ob_status load_tensors(struct build *b, ob_error *error);

#endif
