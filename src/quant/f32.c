/* SPDX-License-Identifier: Apache-2.0
 * f32.c: F32, float as it is, little endian. */
#include <string.h>

#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) { memcpy(dst, src, n * sizeof *dst); }

static void encode(const float *src, void *dst, size_t n) { memcpy(dst, src, n * sizeof *src); }

const struct quant quant_f32 = {
    .name = "F32", .id = 0, .block = 1, .bytes = 4, .decode = decode, .encode = encode};
