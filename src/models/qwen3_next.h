/* SPDX-License-Identifier: Apache-2.0
 * qwen3_next.h: what Qwen 3.5 has of Qwen3-Next. */
#ifndef MODELS_QWEN3_NEXT_H
#define MODELS_QWEN3_NEXT_H

#include "models/recipe.h"

/* Before attention and MLP, the latter's under llama.cpp's name for it. */
extern const struct tensor qwen3_next_norms[];
/* q_proj has q and a gate of each head. */
extern const struct tensor qwen3_next_attention[];
extern const struct tensor qwen3_next_shared_gate[];
/* Sizes, delta net, a rope of a quarter of each head. */
ob_status qwen3_next_sizes(struct build *b, ob_error *error);
ob_status qwen3_next_mixture(struct build *b, ob_error *error);

#endif
