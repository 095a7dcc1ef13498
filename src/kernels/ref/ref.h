/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.h: the definition of every op in plain scalar C: FP32 in and out, double inside. One file an
 * op, its formula in the header comment. */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H

#include "kernels/kernels.h"

void embed_ref(const struct quant *quant, const void *row, uint32_t cols, float scale, float *y);
void gather_rows_ref(const float *x, const uint32_t *row, uint32_t rows, uint32_t cols, float *y);
void add_ref(const float *a, const float *b, float *y, size_t n);
void scale_ref(const float *x, float s, float *y, size_t n);
void softcap_ref(const float *x, float cap, float *y, size_t n);
void glu_silu_ref(const float *gate, const float *up, float *y, size_t n);
void glu_gelu_tanh_ref(const float *gate, const float *up, float *y, size_t n);
void glu_gelu_erf_ref(const float *gate, const float *up, float *y, size_t n);
void glu_relu_ref(const float *gate, const float *up, float *y, size_t n);
void norm_rms_ref(const float *x, const float *w, const float *b, float eps, float *y,
                  uint32_t width);
void norm_layer_ref(const float *x, const float *w, const float *b, float eps, float *y,
                    uint32_t width);
void rope_table_ref(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out);
void rope_ref(const float *x, const float *table, float *y, uint32_t heads, uint32_t head_dim,
              uint32_t half, bool interleaved);
/* The chosen experts as floats: out[used ..) of a route. For every table. */
void route_top(const float *x, uint32_t experts, uint32_t used, float *expert);
void route_softmax_ref(const float *x, uint32_t experts, uint32_t used, float *out);
void route_softmax_chosen_ref(const float *x, uint32_t experts, uint32_t used, float *out);
void combine_ref(const float *x, const uint32_t *row, const float *weight, uint32_t used,
                 uint32_t cols, float *y);
void attention_store_ref(const struct attention_store *job);
void attention_ref(const struct attention_job *job);
void attention_clear_ref(float *state, uint32_t v_dim);
void attention_merge_ref(float *state, const float *part, uint32_t v_dim);
void attention_finish_ref(const float *state, float *y, uint32_t v_dim);

#endif
