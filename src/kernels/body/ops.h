/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.h: every simple op and attention as static functions over the vocabulary of the vec_<isa>.h
 * that was included before, and OPS, their slots. For table.c of each ISA. */
#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"

#include "kernels/body/simple.h"
#include "kernels/body/norm.h"
#include "kernels/body/rope.h"
#include "kernels/body/experts.h"
#include "kernels/body/act.h"
#include "kernels/body/inline.h"
#include "kernels/body/attention_kv.h"
#include "kernels/body/attention_score.h"
#include "kernels/body/attention.h"

#define OPS                                                                             \
    .add = add, .scale = scale, .softcap = softcap, .glu_silu = glu_silu,               \
    .glu_gelu_tanh = glu_gelu_tanh, .glu_gelu_erf = glu_gelu_erf, .glu_relu = glu_relu, \
    .norm_rms = norm_rms, .norm_layer = norm_layer, .rope = rope,                       \
    .route_softmax = route_softmax, .route_softmax_chosen = route_softmax_chosen,       \
    .combine = combine,                                                                 \
    .attention_store = attention_store, .attention = attention,                         \
    .attention_clear = attention_clear, .attention_merge = attention_merge,             \
    .attention_finish = attention_finish
