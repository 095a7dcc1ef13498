/* SPDX-License-Identifier: Apache-2.0
 *
 * encoder.h: what encoders share. Their layer is decoder.h's, with hp.bidirectional; their outputs
 * are the last states, an embedding (pooling.h) and what a head of the model says.
 *
 * Tensors by role: token_types (its first row, that of a first text, is added to all tokens), cls
 * (a head's dense layer), cls.norm, cls.output (the scores of its classes). */
#ifndef MODELS_BLOCKS_ENCODER_H
#define MODELS_BLOCKS_ENCODER_H

#include "models/recipe.h"

/* type_vocab_size: the number "types"; of encoders, and of those used as decoders. */
extern const struct key encoder_keys[], encoder_causal_keys[];

/* Rows of a dense layer and of a norm with their biases, by name without ".weight". */
#define ENCODER_DENSE(ours, theirs, rows, cols, need)                 \
    MATRIX(ours ".weight", theirs ".weight", rows, cols, need),       \
    VECTOR(ours ".bias", theirs ".bias", rows, need)
/* Scores of classes ("labels"), and a dense layer that no model with scores lacks. GGUF files may
 * lack biases. */
#define ENCODER_SCORES(theirs)                                                            \
    MATRIX("cls.output.weight", theirs ".weight", "labels", "width", OPTIONAL),           \
    VECTOR("cls.output.bias", theirs ".bias", "labels", OPTIONAL, .needed = "by_config")
#define ENCODER_SCORES_DENSE(theirs)                                                      \
    MATRIX("cls.weight", theirs ".weight", "width", "width", OPTIONAL,                    \
           .needed = "by_config*labels"),                                                 \
    VECTOR("cls.bias", theirs ".bias", "width", OPTIONAL, .needed = "by_config*labels")
#define ENCODER_NORM(ours, theirs, n)                                              \
    VECTOR(ours ".weight", theirs ".weight|" theirs ".gamma", n, REQUIRED),        \
    VECTOR(ours ".bias", theirs ".bias|" theirs ".beta", n, REQUIRED)
/* Those of a layer. */
#define ENCODER_LAYER(q, k, v, o, up, down)                                             \
    ENCODER_DENSE("blk.{i}.attn_q", q, "heads*k_dim", "width", REQUIRED),               \
    ENCODER_DENSE("blk.{i}.attn_k", k, "heads*k_dim", "width", REQUIRED),               \
    ENCODER_DENSE("blk.{i}.attn_v", v, "heads*v_dim", "width", REQUIRED),               \
    ENCODER_DENSE("blk.{i}.attn_output", o, "width", "heads*v_dim", REQUIRED),          \
    ENCODER_DENSE("blk.{i}.ffn_up", up, "ffn", "width", REQUIRED),                      \
    ENCODER_DENSE("blk.{i}.ffn_down", down, "width", "ffn", REQUIRED)
#define ENCODER_NORMS_AFTER(attention, mlp)                     \
    ENCODER_NORM("blk.{i}.attn_output_norm", attention, "width"), \
    ENCODER_NORM("blk.{i}.layer_output_norm", mlp, "width")
#define ENCODER_NORMS_BEFORE(attention, mlp)               \
    ENCODER_NORM("blk.{i}.attn_norm", attention, "width"), \
    ENCODER_NORM("blk.{i}.ffn_norm", mlp, "width")

/* Families that do not read a number of key heads: each head has its own. Before encoder_sizes. */
void encoder_own_keys(struct build *b);
/* decoder_sizes, layer norms, no causal order. The number "labels" is the rows of the tensor of
 * scores, which is called `gguf` or `classes`; 0: there is none. */
ob_status encoder_sizes(struct build *b, const char *gguf, const char *classes, ob_error *error);

/* Called with the last layer's rows, of models that embed, too: sets the outputs of the graph. */
void encoder_outputs(struct build *b, value_id x);

/* An encoder used as a decoder (is_decoder): decoder_sizes, layer norms; no cross-attention, no
 * vectors of texts. Its states pass a head before the logits:
 *     output_norm(act(head(last_norm(x))))    each where the file has it; act is hp.head_act */
ob_status encoder_causal_sizes(struct build *b, ob_error *error);
value_id encoder_causal_head(struct build *b, value_id x);
/* A layer; the last with that head. */
value_id encoder_causal_layer(struct build *b, value_id x);

/* norm(act(cls(pool(x)))), then cls.output; each where the file has it. */
value_id encoder_head(struct build *b, value_id x, enum pool_kind pool, enum act_kind act);

#endif
