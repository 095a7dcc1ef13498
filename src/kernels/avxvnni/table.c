/* SPDX-License-Identifier: Apache-2.0
 * table.c: AVX-VNNI's dot product, over all of avx2. */
#include "kernels/body/linear.h"
#include "kernels/tables.h"

const struct kernels kernels_table_avxvnni = {
    .name = "avxvnni",
    .act_pack = act_pack_avxvnni,
    .linear = LINEAR_ALL(linear_avxvnni),
};
