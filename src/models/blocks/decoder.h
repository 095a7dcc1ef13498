/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder.h: the layer most families share (pre-norm attention and gated MLP), its keys and
 * tensors. What a file's tensors say needs no argument: biases, per-head norms of q and k, and
 * norms after a sub-layer are used where the recipe lists them and the file has them. */
#ifndef MODELS_BLOCKS_DECODER_H
#define MODELS_BLOCKS_DECODER_H

#include "models/recipe.h"

/* Layers, width, heads, dims, epsilon, context. */
extern const struct key decoder_keys[];
/* Embedding, output, norms, projections without q and k. */
extern const struct tensor decoder_tensors[];
/* q and k in halves, as they are in both spellings. */
extern const struct tensor decoder_qk_tensors[];
extern const struct tensor decoder_qkv_bias_tensors[];

/* Defaults that depend on other keys (head size, attention scale), checks between keys, no windows.
 * Families with ropes of their own call it first. */
ob_status decoder_sizes(struct build *b, ob_error *error);
/* The same, and one rope for all layers. */
ob_status decoder_derive(struct build *b, ob_error *error);
/* Sets hp.window from config.json's layer_types; false if it has none. */
bool decoder_layer_types(struct build *b);

struct decoder_args {
    enum act_kind act;
    bool interleaved; /* rotary pairs (2i, 2i+1) */
};
value_id decoder_layer(struct build *b, value_id x, const struct decoder_args *args);

#endif
