/* SPDX-License-Identifier: Apache-2.0
 *
 * scan.c: h[i] = exp(dt * a[i]) * h[i] + dt * b[i] * x; y = sum of c[i] * h[i], + d * x: the
 * selective scan of Mamba (arXiv 2312.00752, algorithm 2). */
#include <math.h>

#include "kernels/ref/ref.h"

void scan_ref(const struct scan_job *j, uint32_t col0, uint32_t col1) {
    for (uint32_t t = 0; t < j->tokens; t++)
        for (uint32_t c = col0; c < col1; c++) {
            size_t at = (size_t)t * j->cols + c;
            const float *in = j->b + t * j->bc_stride, *out = j->c + t * j->bc_stride;
            double x = j->x[at], dt = j->dt[at], y = j->d ? j->d[c] * x : 0;
            for (uint32_t i = 0; i < j->n; i++) {
                float *h = &j->state[(size_t)i * j->cols + c];
                *h = (float)(exp(dt * j->a[(size_t)i * j->cols + c]) * *h + dt * in[i] * x);
                y += (double)out[i] * *h;
            }
            j->y[at] = (float)y;
        }
}
