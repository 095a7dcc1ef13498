/* SPDX-License-Identifier: Apache-2.0
 * alibi.h: slopes of linear position biases, for attention_args.alibi. */
#ifndef MODELS_BLOCKS_ALIBI_H
#define MODELS_BLOCKS_ALIBI_H

#include <stdint.h>

#include "base/arena.h"

/* [heads]: with n the largest power of two that is not above heads, 2^(-max_bias * i / n) for i =
 * 1 .. n, then for heads beyond n the values between these: 2^(-max_bias * (i - 1/2) / n), i = 1,
 * 2 .. (Press, Smith and Lewis, arXiv 2108.12409). max_bias is 8 if a model does not say. NULL when
 * out of memory. */
float *alibi_slopes(struct arena *arena, uint32_t heads, float max_bias);

#endif
