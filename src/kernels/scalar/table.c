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
    .pool = pool_ref,
    .token_shift = token_shift_ref,
    .concat = concat_ref,
    .slice = slice_ref,
    .tile = tile_ref,
    .route_rest = route_rest_ref,
    .join_pairs = join_pairs_ref,
    .split_pairs = split_pairs_ref,
    .position_factor = position_factor_scalar,
    .position_log = position_log_scalar,
    .position_power = position_power_scalar,
    OPS,
    .rope_table = rope_table_scalar,
};
