/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: the definition: float rows times decoded weights for every format, summed in double in
 * order of k and rounded once. Some tokens go side by side, so that their chains of additions,
 * which do not touch each other, overlap in the processor: whole models are checked with this. */
#include "kernels/body/linear.h"

enum { CHUNK = 256 /* a multiple of every block length */, BESIDE = 8 };

/* Continues the sums of `tokens` rows of x, which are `cols` apart, by n columns. */
static void add(const float *w, const float *x, size_t cols, uint32_t tokens, uint32_t n,
                double sum[BESIDE]) {
    if (tokens < BESIDE) {
        for (uint32_t t = 0; t < tokens; t++)
            for (uint32_t i = 0; i < n; i++) sum[t] += (double)x[t * cols + i] * (double)w[i];
        return;
    }
    double s[BESIDE];
    for (int t = 0; t < BESIDE; t++) s[t] = sum[t];
    for (uint32_t i = 0; i < n; i++) {
        double wi = (double)w[i];
        for (int t = 0; t < BESIDE; t++) s[t] += (double)x[(size_t)t * cols + i] * wi;
    }
    for (int t = 0; t < BESIDE; t++) sum[t] = s[t];
}

void linear_ref(const struct linear_job *job, uint32_t row0, uint32_t row1) {
    const struct quant *quant = job->quant;
    for (uint32_t r = row0; r < row1; r++) {
        const uint8_t *w = (const uint8_t *)job->w + r * job->row_bytes;
        for (uint32_t t = 0; t < job->tokens; t += BESIDE) {
            uint32_t tokens = job->tokens - t < BESIDE ? job->tokens - t : BESIDE;
            const float *x = (const float *)job->x + (size_t)t * job->cols;
            double sum[BESIDE];
            for (int i = 0; i < BESIDE; i++) sum[i] = job->bias ? (double)job->bias[r] : 0;
            for (uint32_t k = 0; k < job->cols; k += CHUNK) {
                float row[CHUNK];
                uint32_t n = job->cols - k < CHUNK ? job->cols - k : CHUNK;
                quant->decode(w + k / quant->block * (size_t)quant->bytes, row, n / quant->block);
                add(row, x + k, job->cols, tokens, n, sum);
            }
            for (uint32_t i = 0; i < tokens; i++)
                job->y[(t + i) * job->y_stride + r] = (float)sum[i];
        }
    }
}
