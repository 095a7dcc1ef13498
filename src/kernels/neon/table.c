/* SPDX-License-Identifier: Apache-2.0
 * table.c: Armv8.2 with dotprod and fp16. */
#include "kernels/body/linear.h"
#include "kernels/body/vec_neon.h"
#include "kernels/body/ops.h"
#include "kernels/tables.h"

const struct kernels kernels_table_neon = {
    .name = "neon",
    .act_quantize = act_quantize_neon,
    .act_pack = act_pack_neon,
    .linear = LINEAR_ALL(linear_neon),
    OPS,
};
