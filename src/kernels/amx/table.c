/* SPDX-License-Identifier: Apache-2.0
 * table.c: AMX tiles for F16 and BF16 weights, over all of avx512. */
#include "kernels/body/linear.h"
#include "kernels/tables.h"

const struct kernels kernels_table_amx = {
    .name = "amx",
    .float_pack = float_pack_amx,
    .linear = {[QUANT_bf16] = linear_bf16_amx, [QUANT_f16] = linear_f16_amx},
};
