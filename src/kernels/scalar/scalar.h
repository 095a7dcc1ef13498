/* SPDX-License-Identifier: Apache-2.0
 * scalar.h: functions of scalar/ that no ISA replaces. */
#ifndef KERNELS_SCALAR_SCALAR_H
#define KERNELS_SCALAR_SCALAR_H

#include "kernels/kernels.h"

void rope_table_scalar(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out);

#endif
