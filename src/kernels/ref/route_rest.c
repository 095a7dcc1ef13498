/* SPDX-License-Identifier: Apache-2.0
 * route_rest.c: the sum of the weights of a token's experts that are numbered from `first`
 * (LongCat-Flash, arXiv 2509.01322, section 2.1: experts that return their input). For every
 * table. */
#include "kernels/ref/ref.h"

void route_rest_ref(const float *route, uint32_t used, uint32_t first, float *y) {
    float sum = 0;
    for (uint32_t i = 0; i < used; i++)
        if (route[used + i] >= (float)first) sum += route[i];
    *y = sum;
}
