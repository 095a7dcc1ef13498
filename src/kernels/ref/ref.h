/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.h: the definition of every op in plain scalar C: FP32 in and out, double inside. One file an
 * op, its formula in the header comment. */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H

#include "kernels/kernels.h"

void embed_ref(const struct quant *quant, const void *row, uint32_t cols, float scale, float *y);
void gather_rows_ref(const float *x, const uint32_t *row, uint32_t rows, uint32_t cols, float *y);
void pool_ref(enum pool_kind kind, const float *x, uint32_t rows, uint32_t cols, float *y);
void add_ref(const float *a, const float *b, float *y, size_t n);
void scale_ref(const float *x, float s, float *y, size_t n);
float dot_ref(const float *a, const float *b, uint32_t n);
void match_rms_ref(const float *a, const float *b, float floor, float *y, uint32_t n);
void round_act_ref(const float *x, float *codes, float *step, uint32_t n);
void sparsify_ref(const float *x, float by, float *y, uint32_t n);
void softcap_ref(const float *x, float cap, float *y, size_t n);
void clamp_ref(const float *x, float low, float high, float *y, size_t n);
void mul_ref(const float *a, const float *b, float *y, size_t n, size_t run);
void affine_ref(const float *x, const float *w, const float *b, float *y, size_t n);
double act_value(enum act_kind act, double x);
/* F(name, kind) for each activation: act_<name>_ref and glu_<name>_ref. */
#define REF_ACTS(F)                                                                           \
    F(silu, ACT_SILU)                                                                         \
    F(gelu_tanh, ACT_GELU_TANH)                                                               \
    F(gelu_erf, ACT_GELU_ERF)                                                                 \
    F(gelu_quick, ACT_GELU_QUICK)                                                             \
    F(relu, ACT_RELU)                                                                         \
    F(relu2, ACT_RELU2)                                                                       \
    F(sigmoid, ACT_SIGMOID)                                                                   \
    F(tanh, ACT_TANH)                                                                         \
    F(softplus, ACT_SOFTPLUS)                                                                 \
    F(exp, ACT_EXP)                                                                           \
    F(root, ACT_ROOT)                                                                         \
    F(identity, ACT_IDENTITY)
#define DECLARE(name, kind)                                                                   \
    void act_##name##_ref(const float *x, float *y, size_t n);                                \
    void glu_##name##_ref(const float *gate, const float *up, float *y, size_t n, size_t run);
REF_ACTS(DECLARE)
#undef DECLARE
void glu_clamped_ref(const float *gate, const float *up, const struct glu_clamp *clamp, float *y,
                     size_t n);
void xielu_ref(const float *x, const struct xielu *args, float *y, size_t n);
void concat_ref(const struct concat *from, float *y);
void slice_ref(const float *x, size_t groups, uint32_t total, uint32_t start, uint32_t len,
               float *y);
void tile_ref(const float *x, size_t groups, uint32_t width, uint32_t times, float *y);
float position_factor_ref(uint32_t pos, float beta, uint32_t offset, float period);
float position_power_ref(uint32_t pos, float exponent, uint32_t offset, float period);
float position_log_ref(uint32_t pos, float beta, uint32_t offset, float period);
void norm_rms_ref(const float *x, const float *w, const float *b, float eps, float *y,
                  uint32_t width);
void norm_layer_ref(const float *x, const float *w, const float *b, float eps, float *y,
                    uint32_t width);
void norm_l2_ref(const float *x, const float *w, const float *b, float eps, float *y,
                 uint32_t width);
void norm_l2_sum_ref(const float *x, const float *w, const float *b, float eps, float *y,
                     uint32_t width);
void rope_table_ref(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out);
void rope_ref(const float *x, const float *table, float *y, uint32_t heads, uint32_t head_dim,
              uint32_t half, bool interleaved);
void route_ref(const struct route_job *job, const float *logits, float *out);
void route_rest_ref(const float *route, uint32_t used, uint32_t first, float *y);
void join_pairs_ref(const float *x, const uint32_t *row, uint32_t used, uint32_t cols, float *y);
void split_pairs_ref(const float *x, const uint32_t *row, uint32_t used, uint32_t cols, float *y);
void combine_ref(const float *x, const uint32_t *row, const float *weight, uint32_t used,
                 uint32_t cols, float *y);
void mix_ref(const float *x, const float *w, uint32_t from, uint32_t to, uint32_t width, float *y);
void sinkhorn_ref(const float *x, uint32_t n, uint32_t rounds, float eps, float *y);
compress_fn compress_ref;
conv1d_fn conv1d_ref;
void token_shift_ref(const float *x, float *state, float *y, uint32_t cols, uint32_t tokens);
void delta_ref(const struct delta_job *job);
void mlstm_ref(const struct mlstm_job *job);
rglru_fn rglru_ref;
scan_fn scan_ref;
wkv4_fn wkv4_ref;
void attention_store_ref(const struct attention_store *job);
void attention_ref(const struct attention_job *job);
void attention_clear_ref(float *state, uint32_t v_dim);
void attention_merge_ref(float *state, const float *part, uint32_t v_dim);
void attention_sink_ref(float *state, float logit, uint32_t v_dim);
void attention_finish_ref(const float *state, float *y, uint32_t v_dim);
/* q . k of a position; only what locates keys is read of the job. */
double attention_dot_ref(const struct attention_job *job, const float *q, uint32_t pos);
void index_scores_ref(const struct index_job *job);

#endif
