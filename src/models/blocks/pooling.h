/* SPDX-License-Identifier: Apache-2.0
 *
 * pooling.h: how a model makes one vector of a text, whatever its family: poolings of the last
 * states side by side, up to two dense layers, length 1 (hp.pool, hp.dense, hp.pool_unit).
 *
 *     Hugging Face    modules.json of a sentence-transformers directory
 *     GGUF            {arch}.pooling_type, dense_2 and dense_3; our converter adds what has no
 *                     number there: 1bit.pooling, 1bit.pooling_unit, 1bit.dense_<n>_act
 *
 * A model of which neither says anything writes, or if it is an encoder takes the mean. */
#ifndef MODELS_BLOCKS_POOLING_H
#define MODELS_BLOCKS_POOLING_H

#include "format/gguf_write.h"
#include "models/recipe.h"

/* The dense layers, and the scores that a classifier made of a decoder has, of any recipe. */
extern const struct tensor pooling_tensors[];

/* llama.cpp's numbers of the ways. */
enum { POOLING_NONE, POOLING_MEAN, POOLING_FIRST, POOLING_LAST, POOLING_RANK };

/* Sets hp.embeds, hp.pool and so on; before the recipe's derive. */
ob_status pooling_read(struct build *b, ob_error *error);
/* Once hp.bidirectional is known: what was not said, and what does not fit. */
ob_status pooling_settle(struct build *b, ob_error *error);
/* The vector, of the last normed states. */
value_id pooling_vector(struct build *b, value_id x);
/* The keys of a GGUF of this architecture. */
void pooling_put(const struct hparams *hp, const char *arch, struct gguf_writer *w);

#endif
