/* SPDX-License-Identifier: Apache-2.0
 * table.c: the definition of every op. act_quantize is NULL: linear takes float rows. */
#include "kernels/body/linear.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

const struct kernels kernels_table_ref = {
    .name = "ref",
    .linear = LINEAR_ALL(linear_ref),
    .embed = embed_ref,
    .gather_rows = gather_rows_ref,
    .add = add_ref,
    .scale = scale_ref,
    .softcap = softcap_ref,
    .glu_silu = glu_silu_ref,
    .glu_gelu_tanh = glu_gelu_tanh_ref,
    .glu_gelu_erf = glu_gelu_erf_ref,
    .glu_relu = glu_relu_ref,
    .norm_rms = norm_rms_ref,
    .norm_layer = norm_layer_ref,
    .rope_table = rope_table_ref,
    .rope = rope_ref,
    .route_softmax = route_softmax_ref,
    .route_softmax_chosen = route_softmax_chosen_ref,
    .combine = combine_ref,
    .attention_store = attention_store_ref,
    .attention = attention_ref,
    .attention_clear = attention_clear_ref,
    .attention_merge = attention_merge_ref,
    .attention_finish = attention_finish_ref,
};
