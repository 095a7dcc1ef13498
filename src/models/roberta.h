/* SPDX-License-Identifier: Apache-2.0
 * roberta.h: what MPNet shares with RoBERTa. */
#ifndef MODELS_ROBERTA_H
#define MODELS_ROBERTA_H

#include "models/bert.h"

/* bert_keys and the padding token's number, after whose row positions are counted. */
extern const struct key roberta_keys[];
/* A pooler, or a classifier of two layers; the head that guesses words is not needed. */
extern const struct tensor roberta_head_tensors[];

ob_status roberta_derive(struct build *b, ob_error *error);
/* The same, where the padding token is always this one. */
ob_status roberta_derive_padded(struct build *b, uint32_t padding, ob_error *error);

#endif
