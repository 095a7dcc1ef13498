/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.h: the functions behind the slots act_quantize, act_pack and linear of all tables. One
 * linear function serves every format: job->quant says which. */
#ifndef KERNELS_BODY_LINEAR_H
#define KERNELS_BODY_LINEAR_H

#include "kernels/kernels.h"

enum { LINEAR_SCRATCH = 432 << 10 }; /* bytes: what the greediest body needs */

/* All slots of `linear` filled with one function. */
#define LINEAR_ALL(function) {[0 ... QUANT_COUNT - 1] = function}

linear_fn linear_ref, linear_scalar, linear_avx2, linear_avxvnni, linear_avx512, linear_neon,
    linear_i8mm;
linear_fn linear_bf16_amx, linear_f16_amx;

/* The same row whatever the table. */
void act_quantize_scalar(const float *x, uint32_t cols, void *act_row);
void act_quantize_avx2(const float *x, uint32_t cols, void *act_row);
void act_quantize_avx512(const float *x, uint32_t cols, void *act_row);
void act_quantize_neon(const float *x, uint32_t cols, void *act_row);

/* Into tiles. */
void act_pack_avx2(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed);
void act_pack_avxvnni(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                      uint32_t tokens, void *packed);
void act_pack_avx512(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                     uint32_t tokens, void *packed);
void act_pack_i8mm(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed);
void act_pack_neon(const struct quant *quant, const struct act *row, uint32_t cols, uint32_t t,
                   uint32_t tokens, void *packed);
void float_pack_amx(const struct quant *quant, const float *const *row, uint32_t tokens,
                    uint32_t cols, void *packed);

#endif
