/* SPDX-License-Identifier: Apache-2.0
 * inkling.h: what the Inkling families share: keys, window layers, biases by distance. */
#ifndef MODELS_INKLING_H
#define MODELS_INKLING_H

#include "models/recipe.h"

extern const struct key inkling_keys[];

/* decoder_sizes with the heads of window layers; of the vocabulary what the output has rows for:
 * "padded" is what the embedding has. */
ob_status inkling_sizes(struct build *b, ob_error *error);
/* Rows of attn_rel.weight: distances that have a bias. */
#define INKLING_DISTANCES(theirs)                                                           \
    MATRIX("blk.{i}.attn_rel.weight", theirs, "slides*window+sees_all*rel_extent", "d_rel", \
           REQUIRED, .from_hf = "T")
/* Biases by distance of each head, from its d_rel columns of `states`. */
value_id inkling_by_distance(struct build *b, value_id states);
/* x times the temperature of its position, in layers that see all positions. */
value_id inkling_temper(struct build *b, value_id x);
/* x and its convolution. */
value_id inkling_conv(struct build *b, value_id x, const char *name);

#endif
