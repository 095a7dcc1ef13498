/* SPDX-License-Identifier: Apache-2.0
 * packed_floats.h: what a table that packs floats must give, bit for bit, in plain C from the words
 * of kernels.h. */
#ifndef CHECK_PACKED_FLOATS_H
#define CHECK_PACKED_FLOATS_H

#include "kernels/kernels.h"

/* Rows [row0, row1) of job->y, from the rows of x as they are. */
void packed_floats_linear(const struct linear_job *job, const float *x, uint32_t row0,
                          uint32_t row1);

#endif
