/* SPDX-License-Identifier: Apache-2.0
 *
 * hybrid.h: families of which some layers, or all, keep a state in place of keys and values. In
 * formulas "recurrent" is 1 in such a layer, whose heads and kv_heads are 0. */
#ifndef MODELS_BLOCKS_HYBRID_H
#define MODELS_BLOCKS_HYBRID_H

#include "models/recipe.h"

/* ---- all layers ---- */

/* Layers, width, epsilon, context: no heads. */
extern const struct key recurrent_keys[];
/* Embedding, output, last norm and the norm before each mixer, as Mamba names them. */
extern const struct tensor recurrent_ends[];
/* As decoder_sizes, for families without attention. */
ob_status recurrent_sizes(struct build *b, ob_error *error);

/* Refuses another activation of the recurrent layers than SiLU, where a key of theirs names one. */
ob_status recurrent_check_act(struct build *b, ob_error *error);

/* ---- some layers ---- */

/* feed_forward.* with pre_ff_layernorm before it, final_layernorm at the end. */
extern const struct tensor hybrid_feed_forward[];

/* Layers that `is` says have no attention; in GGUF those without key heads, or, where it has one
 * number of these for all layers, those that are not the last of each full_attention_interval. */
ob_status hybrid_read(struct build *b, bool (*is)(struct build *b, uint32_t layer),
                      ob_error *error);
/* Then decoder_sizes. */
ob_status hybrid_sizes(struct build *b, bool (*is)(struct build *b, uint32_t layer),
                       ob_error *error);
/* layer_types names it linear_attention, mamba or conv. */
bool hybrid_is_recurrent(struct build *b, uint32_t layer);

#endif
