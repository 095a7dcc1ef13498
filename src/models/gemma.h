/* SPDX-License-Identifier: Apache-2.0
 * gemma.h: what the Gemma line shares. */
#ifndef MODELS_GEMMA_H
#define MODELS_GEMMA_H

#include "models/recipe.h"

/* query_pre_attn_scalar and the soft caps of scores and logits. */
extern const struct key gemma2_keys[];
/* Embeddings times sqrt(width); scores times query_pre_attn_scalar^-0.5, where the file has it. */
void gemma_scales(struct build *b);

#endif
