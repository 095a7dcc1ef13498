/* SPDX-License-Identifier: Apache-2.0
 * table.c: AVX-512 F, BW, DQ, VL, VNNI and VBMI. */
#include "kernels/body/linear.h"
#include "kernels/body/vec_avx512.h"
#include "kernels/body/ops.h"
#include "kernels/tables.h"

const struct kernels kernels_table_avx512 = {
    .name = "avx512",
    .act_quantize = act_quantize_avx512,
    .act_pack = act_pack_avx512,
    .linear = LINEAR_ALL(linear_avx512),
    OPS,
};
