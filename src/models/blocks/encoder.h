/* SPDX-License-Identifier: Apache-2.0
 *
 * encoder.h: what encoders share. Their layer is decoder.h's, with hp.bidirectional; their outputs
 * are the last states, an embedding (hp.embeds, hp.pool) and what a head of the model says.
 *
 * Tensors by role: token_types (its first row, that of a first text, is added to all tokens), cls
 * (a head's dense layer), cls.norm, cls.output (the scores of its classes). */
#ifndef MODELS_BLOCKS_ENCODER_H
#define MODELS_BLOCKS_ENCODER_H

#include "models/recipe.h"

/* type_vocab_size: the number "types"; how a GGUF says that a text is embedded. */
extern const struct key encoder_keys[];

/* decoder_sizes, layer norms, no causal order, and how the file says a text is embedded:
 * pooling_type of a GGUF (then of length 1), modules.json of a sentence-transformers directory,
 * else the mean. The number "labels" is the rows of the tensor of scores, which is called `gguf` or
 * `classes`; 0: there is none. */
ob_status encoder_sizes(struct build *b, const char *gguf, const char *classes, ob_error *error);

/* Called with the last layer's rows: sets the outputs of the graph. */
void encoder_outputs(struct build *b, value_id x);

/* norm(act(cls(pool(x)))), then cls.output; each where the file has it. */
value_id encoder_head(struct build *b, value_id x, enum pool_kind pool, enum act_kind act);

#endif
