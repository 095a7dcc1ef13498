/* SPDX-License-Identifier: Apache-2.0
 * granite.h: Granite's multipliers, which its relatives share. */
#ifndef MODELS_GRANITE_H
#define MODELS_GRANITE_H

#include "models/recipe.h"

/* embedding_multiplier, residual_multiplier, attention_multiplier, logits_scaling. */
extern const struct key granite_keys[];
/* block_sparse_moe.* and shared_mlp.*, the latter beside experts. */
extern const struct tensor granitemoe_experts[], granitemoe_shared[];
/* decoder_derive, then the multipliers; logits are divided by logits_scaling. */
ob_status granite_derive(struct build *b, ob_error *error);
/* Only the multipliers; logit_scale is a factor or a divisor. */
void granite_multipliers(struct build *b);

#endif
