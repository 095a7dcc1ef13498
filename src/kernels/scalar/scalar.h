/* SPDX-License-Identifier: Apache-2.0
 * scalar.h: functions of scalar/ that no ISA replaces. */
#ifndef KERNELS_SCALAR_SCALAR_H
#define KERNELS_SCALAR_SCALAR_H

#include "kernels/kernels.h"

void rope_table_scalar(uint32_t pos, const float *freq, uint32_t half, float magnitude, float *out);
float position_factor_scalar(uint32_t pos, float beta, uint32_t offset, float period);
float position_power_scalar(uint32_t pos, float exponent, uint32_t offset, float period);
float position_log_scalar(uint32_t pos, float beta, uint32_t offset, float period);

#endif
