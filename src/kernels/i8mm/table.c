/* SPDX-License-Identifier: Apache-2.0
 * table.c: the matrix products of 8 bits of Armv8.6, over all of neon. */
#include "kernels/body/linear.h"
#include "kernels/tables.h"

const struct kernels kernels_table_i8mm = {
    .name = "i8mm",
    .act_pack = act_pack_i8mm,
    .linear = LINEAR_ALL(linear_i8mm),
};
