/* SPDX-License-Identifier: Apache-2.0
 * llama.h: what llama.c shares with the classes that are Llama with other constants. */
#ifndef MODELS_LLAMA_H
#define MODELS_LLAMA_H

#include "models/recipe.h"

extern const struct tensor llama_tensors[];
/* Mistral's windows. */
extern const struct key mistral_keys[];
ob_status mistral_derive(struct build *b, ob_error *error);
value_id llama_layer(struct build *b, value_id x);

#endif
