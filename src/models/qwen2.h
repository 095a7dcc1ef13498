/* SPDX-License-Identifier: Apache-2.0
 * qwen2.h: what Qwen2, Qwen3 and their mixtures of experts share. */
#ifndef MODELS_QWEN2_H
#define MODELS_QWEN2_H

#include "models/recipe.h"

extern const struct key qwen2_keys[];
extern const struct tensor qwen2_norm_tensors[];
extern const struct tensor qwen3_norm_tensors[]; /* of each head of q and k */
ob_status qwen2_derive(struct build *b, ob_error *error);
value_id qwen2_layer(struct build *b, value_id x);

#endif
