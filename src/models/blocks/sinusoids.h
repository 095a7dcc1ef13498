/* SPDX-License-Identifier: Apache-2.0
 * sinusoids.h: positions of sines and cosines (Vaswani et al. 2017), as a table made at load. */
#ifndef MODELS_BLOCKS_SINUSOIDS_H
#define MODELS_BLOCKS_SINUSOIDS_H

#include "models/recipe.h"

/* Refuses widths and contexts that no table can have. */
ob_status sinusoids_check(const struct build *b, ob_error *error);
/* x plus, for a token at position p, the sines and then the cosines of (p + first) * 10000^(-i /
 * steps), i = 0 .. width/2 - 1. The table has hp.context rows. */
value_id sinusoids_add(struct build *b, value_id x, uint32_t first, double steps);

#endif
