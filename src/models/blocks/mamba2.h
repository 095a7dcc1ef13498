/* SPDX-License-Identifier: Apache-2.0
 *
 * mamba2.h: Mamba-2 (Dao and Gu, arXiv 2405.21060) in attention's place: one projection to gate,
 * values, B, C and step sizes, a short causal convolution, a state of [heads, state, head_dim] with
 * one decay a head, a gated norm of each group. Layers where `recurrent` is 1 have it. */
#ifndef MODELS_BLOCKS_MAMBA2_H
#define MODELS_BLOCKS_MAMBA2_H

#include "models/recipe.h"

/* Numbers "conv" (the kernel), "state", "groups", "mamba_heads", "mamba_dim", "mamba_norm" (0: it
 * has none). */
extern const struct key mamba2_keys[];
/* mixer.* or mamba.* of a layer. */
extern const struct tensor mamba2_tensors[];

/* "inner" is mamba_heads * mamba_dim; reads the range of step sizes; checks. */
ob_status mamba2_sizes(struct build *b, ob_error *error);

struct mamba2_args {
    enum act_kind act; /* after the convolution */
    float norm_eps;    /* of the gated norm */
    bool norm_first;   /* before the gate */
    struct weight *factors; /* of the projection's columns; NULL: none */
};
value_id mamba2_mixer(struct build *b, value_id x, const struct mamba2_args *args);

#endif
