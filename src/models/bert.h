/* SPDX-License-Identifier: Apache-2.0
 * bert.h: what RoBERTa shares with BERT. */
#ifndef MODELS_BERT_H
#define MODELS_BERT_H

#include "models/blocks/encoder.h"

extern const struct tensor bert_embeddings[]; /* of tokens and types, the norm */
extern const struct tensor bert_layers[];
/* Of tanh(W x) over the first token's state; how the model was trained is not needed. */
value_id bert_head(struct build *b, value_id x);
/* BertConfig's keys that would change the mathematics. */
ob_status bert_refuse(struct build *b, ob_error *error);

#endif
