/* SPDX-License-Identifier: Apache-2.0
 *
 * ngrams.h: a memory of n-grams ("Engram"): tables so large that a token and those before it,
 * hashed by several heads, find a row that few others share. Each layer that has it (config.json's
 * ple_layer_ids, from 1) has one table for all orders and heads, of which a head has a prime number
 * of rows; primes and hashes are computed from the keys. */
#ifndef MODELS_BLOCKS_NGRAMS_H
#define MODELS_BLOCKS_NGRAMS_H

#include "models/recipe.h"

/* Numbers "ngram_order", "ngram_parts" (of a table), "ngram_width" (of all heads' rows). */
extern const struct key ngrams_keys[];
/* The table, ngram_embd.weight; what files say of primes and hashes. */
extern const struct tensor ngrams_tensors[];

/* Sets hp.ngrams and hp.ngram_rows, and "ngram_dim", a row's columns. Of a file whose primes or
 * hashes are others it says so. */
ob_status ngrams_sizes(struct build *b, ob_error *error);
/* This layer's rows for each token, [ngram_width]. */
value_id ngrams_embed(struct build *b);

#endif
