/* SPDX-License-Identifier: Apache-2.0
 *
 * streams.h: a residual stream that is several side by side (hyper-connections, arXiv 2409.19606):
 * a sub-layer takes a weighted sum of them, and what it gives goes to each by another weight. The
 * weights are the token's own: of a norm of all streams a small matrix makes their logits. */
#ifndef MODELS_BLOCKS_STREAMS_H
#define MODELS_BLOCKS_STREAMS_H

#include "models/recipe.h"

/* A vector of the family's own. */
struct weight *streams_constant(struct build *b, uint32_t n, const float *value);
/* Copies of x. */
value_id streams_open(struct build *b, value_id x, uint32_t streams);
/* fn norm(x) * scale + base */
value_id streams_logits(struct build *b, value_id x, struct weight *fn, struct weight *scale,
                        struct weight *base);

#endif
