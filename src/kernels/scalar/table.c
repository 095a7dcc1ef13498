/* SPDX-License-Identifier: Apache-2.0
 * table.c: what every other table is held against, bit for bit. */
#include "kernels/body/vec_scalar.h"
#include "kernels/body/ops.h"
#include "kernels/body/linear.h"
#include "kernels/ref/ref.h"
#include "kernels/scalar/scalar.h"
#include "kernels/tables.h"

const struct kernels kernels_table_scalar = {
    .name = "scalar",
    .act_quantize = act_quantize_scalar,
    .linear = LINEAR_ALL(linear_scalar),
    .embed = embed_ref,
    .gather_rows = gather_rows_ref,
    OPS,
    .rope_table = rope_table_scalar,
};
