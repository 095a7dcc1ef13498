/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.h: every simple op and attention as static functions over the vocabulary of the vec_<isa>.h
 * that was included before, and OPS, their slots. For table.c of each ISA. */
#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"

#include "kernels/body/simple.h"
#include "kernels/body/glu.h"
#include "kernels/body/norm.h"
#include "kernels/body/rows.h"
#include "kernels/body/rope.h"
#include "kernels/body/experts.h"
#include "kernels/body/act.h"
#include "kernels/body/inline.h"
#include "kernels/body/states.h"
#include "kernels/body/attention_kv.h"
#include "kernels/body/attention_score.h"
#include "kernels/body/attention.h"
#include "kernels/body/index.h"

#define ACT(name, kind, f) [kind] = act_##name,
#define GLU(name, kind, f) [kind] = glu_##name,

#define OPS                                                                             \
    .add = add, .scale = scale, .softcap = softcap, .clamp = clamp, .mul = mul,         \
    .affine = affine, .act = {BODY_ACTS(ACT)}, .glu = {BODY_ACTS(GLU)},                 \
    .glu_clamped = glu_clamped, .xielu = xielu,                                         \
    .norm = {[NORM_RMS] = norm_rms, [NORM_LAYER] = norm_layer, [NORM_L2] = norm_l2,     \
             [NORM_L2_SUM] = norm_l2_sum},                                              \
    .dot = dot, .sparsify = sparsify, .match_rms = match_rms, .round_act = round_act,   \
    .rope = rope, .route = route,                                                       \
    .combine = combine, .mix = mix, .sinkhorn = sinkhorn, .compress = compress,         \
    .conv1d = conv1d, .delta = delta, .mlstm = mlstm, .rglru = rglru,                   \
    .scan = scan, .wkv4 = wkv4,                                                         \
    .attention_store = attention_store, .attention = attention,                         \
    .attention_clear = attention_clear, .attention_merge = attention_merge,             \
    .attention_sink = attention_sink, .attention_finish = attention_finish,          \
    .index_scores = index_scores
