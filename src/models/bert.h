/* SPDX-License-Identifier: Apache-2.0
 * bert.h: what BERT's relatives share: names of tensors below "{m}encoder.layer.{i}.", heads. */
#ifndef MODELS_BERT_H
#define MODELS_BERT_H

#include "models/blocks/decoder.h"
#include "models/blocks/encoder.h"

/* From embeddings to the stream, where these have different widths. */
#define BERT_WIDE(theirs)                                                                    \
    MATRIX("token_embd_wide.weight", theirs ".weight", "width", "embd", OPTIONAL,            \
           .needed = "projects"),                                                            \
    VECTOR("token_embd_wide.bias", theirs ".bias", "width", OPTIONAL, .needed = "projects")

extern const struct key bert_keys[];          /* decoder_keys' and encoder_keys' company */
extern const struct tensor bert_embeddings[]; /* of tokens, positions and types, the norm */
extern const struct tensor bert_layers[];     /* with norms on the sums */
extern const struct tensor bert_dense[];      /* of a layer, without norms */
extern const struct tensor bert_head_tensors[];   /* a pooler, the scores behind it */
extern const struct tensor bert_causal_head[];    /* "cls.predictions.", of causal models */

/* Sizes of an encoder, of whose classes `classes` is the tensor; all positions are used. */
ob_status bert_sizes(struct build *b, const char *classes, ob_error *error);
/* The same of a causal model, whose head has the layers' activation. */
ob_status bert_causal_derive(struct build *b, ob_error *error);
/* After these: the first `before` rows of the table of positions are none. */
ob_status bert_skip_positions(struct build *b, uint32_t before, ob_error *error);
/* Of tanh(W x) over the first token's state; how the model was trained is not needed. */
value_id bert_head(struct build *b, value_id x);

#endif
