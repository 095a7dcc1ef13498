/* SPDX-License-Identifier: Apache-2.0
 * tables.h: the table of each folder, for kernels.c alone. NULL where a folder has nothing. */
#ifndef KERNELS_TABLES_H
#define KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const struct kernels kernels_table_ref;
extern const struct kernels kernels_table_scalar;
extern const struct kernels kernels_table_avx2;
extern const struct kernels kernels_table_avxvnni;
extern const struct kernels kernels_table_avx512;
extern const struct kernels kernels_table_amx;
extern const struct kernels kernels_table_neon;
extern const struct kernels kernels_table_i8mm;

#endif
