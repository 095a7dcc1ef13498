/* SPDX-License-Identifier: Apache-2.0
 * table.c: AVX2, FMA and F16C. */
#include "kernels/tables.h"

const struct kernels kernels_table_avx2 = {
    .name = "avx2",
};
