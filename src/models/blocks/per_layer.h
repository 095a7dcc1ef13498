/* SPDX-License-Identifier: Apache-2.0
 *
 * per_layer.h: embeddings for each layer (Gemma 3n and 4): a second table gives a token a short row
 * for every layer, to which a projection of its embedding is added; a layer gates its stream's
 * projection with its row. */
#ifndef MODELS_BLOCKS_PER_LAYER_H
#define MODELS_BLOCKS_PER_LAYER_H

#include "models/recipe.h"

/* Numbers "ple", the length of a row (0: the model has none), and "ple_vocab". */
extern const struct key per_layer_keys[];
extern const struct tensor per_layer_tensors[];

ob_status per_layer_sizes(struct build *b, ob_error *error);
/* The rows of all layers, from the stream that enters the first; NO_VALUE: the model has none. */
value_id per_layer_inputs(struct build *b, value_id x);
/* What this layer adds for x: norm(W (act(V x) * row)). */
value_id per_layer_input(struct build *b, value_id x, value_id inputs);

#endif
