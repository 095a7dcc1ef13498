/* SPDX-License-Identifier: Apache-2.0
 *
 * moe.h: the mixture of experts in place of a layer's MLP: a router chooses a few of its gated MLPs
 * for each token. Layers whose hp.experts is 0 keep their plain MLP. */
#ifndef MODELS_BLOCKS_MOE_H
#define MODELS_BLOCKS_MOE_H

#include "models/recipe.h"

/* Experts, used ones, their width: 0 where the file does not say. */
extern const struct key moe_keys[];
/* Router and experts, as Qwen names them. */
extern const struct tensor moe_tensors[];

/* Checks the counts; all layers get experts but those the file names as dense. Runs after
 * decoder_sizes. */
ob_status moe_sizes(struct build *b, ob_error *error);
value_id moe_mlp(struct build *b, value_id x, enum act_kind act);

#endif
