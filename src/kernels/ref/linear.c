/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: the definition: float rows times decoded weights for every format, summed in double and
 * rounded once. */
#include "kernels/body/linear.h"

enum { CHUNK = 256 }; /* a multiple of every block length */

void linear_ref(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    const struct quant *quant = job->quant;
    for (uint32_t r = row0; r < row1; r++) {
        const uint8_t *w = (const uint8_t *)job->w + r * job->row_bytes;
        for (uint32_t t = 0; t < job->tokens; t++) {
            const float *x = (const float *)job->x + (size_t)t * job->cols;
            double sum = job->bias ? (double)job->bias[r] : 0;
            for (uint32_t k = 0; k < job->cols; k += CHUNK) {
                float row[CHUNK];
                uint32_t n = job->cols - k < CHUNK ? job->cols - k : CHUNK;
                quant->decode(w + k / quant->block * (size_t)quant->bytes, row, n / quant->block);
                for (uint32_t i = 0; i < n; i++) sum += (double)x[k + i] * (double)row[i];
            }
            job->y[t * job->y_stride + r] = (float)sum;
        }
    }
}
