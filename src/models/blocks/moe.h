/* SPDX-License-Identifier: Apache-2.0
 *
 * moe.h: the mixture of experts in place of a layer's MLP: a router chooses a few of its MLPs for
 * each token (arXiv 1701.06538). Layers whose hp.experts is 0 keep their plain MLP. Experts are
 * gated or plain, with biases or without, beside shared experts or not, as the tensors say. */
#ifndef MODELS_BLOCKS_MOE_H
#define MODELS_BLOCKS_MOE_H

#include "models/recipe.h"

/* Experts, used ones, their width, dense layers, shared ones: 0 where the file does not say. */
extern const struct key moe_keys[];
/* Router and experts, as Qwen and DeepSeek name them. */
extern const struct tensor moe_tensors[];
/* The same, where Hugging Face has all experts of a layer in one tensor, gate and up fused. */
extern const struct tensor moe_fused_tensors[];
/* The same, as Mixtral names them: block_sparse_moe, w1, w3 and w2. */
extern const struct tensor moe_mixtral_tensors[];
extern const struct tensor moe_shared_tensors[];  /* mlp.shared_experts.* and its other names */
extern const struct tensor moe_bias_tensors[];    /* e_score_correction_bias: only chooses */

/* Sets hp.route to the family's router, changed by what the file says of groups, normalization and
 * scale; checks the counts; all layers get experts but those the file names as dense: the first
 * ones, by mlp_layer_types, mlp_only_layers, decoder_sparse_step. Runs after decoder_sizes. */
ob_status moe_sizes(struct build *b, const struct route_args *family, ob_error *error);
value_id moe_mlp(struct build *b, value_id x);
/* Its parts: the routed experts by these logits, the layer's bias of choice added to `router`; and
 * the shared ones. */
value_id moe_experts(struct build *b, value_id x, value_id logits,
                     const struct route_args *router);
value_id moe_shared(struct build *b, value_id x);

#endif
