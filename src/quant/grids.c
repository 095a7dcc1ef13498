/* SPDX-License-Identifier: Apache-2.0
 * grids.c: the CPU's copy of the grids. */
#include "quant/grids.h"

#define GRID const
#include "quant/grids_data.h"
