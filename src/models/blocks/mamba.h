/* SPDX-License-Identifier: Apache-2.0
 *
 * mamba.h: Mamba's selective state space (Gu and Dao, arXiv 2312.00752) in attention's place: a
 * short causal convolution, a step size, B and C from each token, a scan, a gate. Layers where
 * `recurrent` is 1 have it. */
#ifndef MODELS_BLOCKS_MAMBA_H
#define MODELS_BLOCKS_MAMBA_H

#include "models/recipe.h"

/* Numbers "conv" (the kernel), "state", "inner" and "dt_rank"; 0 where the file does not say. */
extern const struct key mamba_keys[];
/* mixer.* or mamba.* of a layer. */
extern const struct tensor mamba_tensors[];
extern const struct tensor mamba_inner_norms[]; /* of step size, B and C, each with its own */

/* "inner" is expand * width, "dt_rank" width / 16 rounded up, where the file does not say. */
ob_status mamba_sizes(struct build *b, ob_error *error);
/* Step size, B and C are normed where the file has weights for it, or bare with norm_eps > 0. */
value_id mamba_mixer(struct build *b, value_id x, float norm_eps);

#endif
