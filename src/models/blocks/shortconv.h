/* SPDX-License-Identifier: Apache-2.0
 *
 * shortconv.h: a gated short convolution in attention's place (Liquid AI's LFM2): of three
 * projections b, c and x the output is c * conv(b * x). Layers where `recurrent` is 1 have it. */
#ifndef MODELS_BLOCKS_SHORTCONV_H
#define MODELS_BLOCKS_SHORTCONV_H

#include "models/recipe.h"

/* Number "conv", the kernel. */
extern const struct key shortconv_keys[];
extern const struct tensor shortconv_tensors[]; /* conv.* of a layer */
/* operator_norm and ffn_norm; feed_forward.w1 (gate), w3, w2; embedding_norm at the end. */
extern const struct tensor shortconv_rest[];

value_id shortconv_mixer(struct build *b, value_id x);

#endif
