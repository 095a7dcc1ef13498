/* SPDX-License-Identifier: Apache-2.0
 * table.c: the definition of every op. act_quantize is NULL: linear takes float rows. */
#include "kernels/body/linear.h"
#include "kernels/tables.h"

const struct kernels kernels_table_ref = {
    .name = "ref",
    .linear = LINEAR_ALL(linear_ref),
};
