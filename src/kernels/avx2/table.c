/* SPDX-License-Identifier: Apache-2.0
 * table.c: AVX2, FMA and F16C. */
#include "kernels/body/vec_avx2.h"
#include "kernels/body/ops.h"
#include "kernels/body/linear.h"
#include "kernels/tables.h"

const struct kernels kernels_table_avx2 = {
    .name = "avx2",
    .act_quantize = act_quantize_avx2,
    .act_pack = act_pack_avx2,
    .linear = LINEAR_ALL(linear_avx2),
    OPS,
};
