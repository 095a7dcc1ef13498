/* SPDX-License-Identifier: Apache-2.0
 *
 * deltanet.h: the gated delta net (Yang, Kautz and Hatamizadeh, arXiv 2412.06464) in attention's
 * place: q, k and v each behind a short causal convolution, q and k of length 1, a state of [k, v]
 * a head that decays and is corrected by the delta rule, a gated norm of each head. Layers where
 * `recurrent` is 1 have it. */
#ifndef MODELS_BLOCKS_DELTANET_H
#define MODELS_BLOCKS_DELTANET_H

#include "models/recipe.h"

/* Numbers "conv" (the kernel), "lin_k", "lin_v" (of a head), "lin_k_heads", "lin_v_heads". */
extern const struct key deltanet_keys[];
/* linear_attn.*: decay, step bias, norm, output; in GGUF q, k, v and their convolutions too. */
extern const struct tensor deltanet_tensors[];
/* Hugging Face: one convolution for q, k and v, or one each. */
extern const struct tensor deltanet_one_conv[], deltanet_three_convs[];

/* Checks; "key" and "value" are the columns of q or k, and of v. */
ob_status deltanet_sizes(struct build *b, ob_error *error);

struct deltanet_args {
    value_id decay;        /* deltanet_decay() of a projection */
    value_id gate;         /* a column for each of v */
    enum act_kind act;     /* of the gate; 0 is SiLU */
    float norm_eps;        /* of the gated norm */
    float beta_scale;      /* 2 where eigenvalues may be negative; 0 is 1 */
    bool decay_each;       /* a decay for each element of k, not each head */
    bool k_tiled;
};
/* exp(-exp(A_log) * softplus(a + dt_bias)) */
value_id deltanet_decay(struct build *b, value_id a);
value_id deltanet_mixer(struct build *b, value_id x, const struct deltanet_args *args);
/* With the decay of "ssm_alpha", a gate of "attn_gate"; the rest as args say. */
value_id deltanet_plain(struct build *b, value_id x, const struct deltanet_args *args);

#endif
