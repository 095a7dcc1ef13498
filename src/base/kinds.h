/* SPDX-License-Identifier: Apache-2.0
 * kinds.h: kinds of arithmetic that graph/ names and kernels/ computes; neither sees the other. */
#ifndef BASE_KINDS_H
#define BASE_KINDS_H

/* Formulas: kernels/ref/act.c. */
enum act_kind {
    ACT_SILU,
    ACT_GELU_TANH,
    ACT_GELU_ERF,
    ACT_GELU_QUICK,
    ACT_RELU,
    ACT_RELU2,
    ACT_SIGMOID,
    ACT_TANH,
    ACT_SOFTPLUS,
    ACT_EXP,
    ACT_ROOT,
    ACT_IDENTITY,
    ACT_KINDS
};

/* See kernels/ref/glu_clamped.c; a limit may be INFINITY. */
struct glu_clamp {
    float alpha, limit, up_limit, up_add;
};

/* See kernels/ref/xielu.c. */
struct xielu {
    float above, below, beta, eps;
};

/* Formulas: kernels/ref/norm.c. */
enum norm_kind { NORM_RMS, NORM_LAYER, NORM_L2, NORM_L2_SUM, NORM_KINDS };

/* What a router's logits become. SOFTMAX is over all experts, SOFTMAX_CHOSEN over those that were
 * chosen (by logit); SPARSEMIXER chooses by logit, too. Formulas: kernels/ref/route.c. */
enum route_score {
    ROUTE_SOFTMAX,
    ROUTE_SOFTMAX_CHOSEN,
    ROUTE_SIGMOID,
    ROUTE_SQRT_SOFTPLUS,
    ROUTE_SPARSEMIXER,
    ROUTE_IDENTITY,
    ROUTE_SCORES
};

/* What a sequence's rows become, one row: formulas in kernels/ref/pool.c. */
enum pool_kind {
    POOL_FIRST,
    POOL_MAX,
    POOL_MEAN,
    POOL_MEAN_SQRT,
    POOL_WEIGHTED,
    POOL_LAST,
    POOL_KINDS
};

/* What a group of experts is worth: its best expert, or the sum of its best two. */
enum route_group { ROUTE_GROUP_MAX, ROUTE_GROUP_TOP2 };

enum { NGRAM_ORDER_MAX = 8 };

enum { ROUTE_USED_MAX = 64, ROUTE_GROUPS_MAX = 64, ROUTE_EXPERTS_MAX = 4096 };

#endif
