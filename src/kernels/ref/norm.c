/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c: over one run of `width` elements, w and b optional:
 *     rms    y = x / sqrt(mean(x^2) + eps) * w + b                 (arXiv 1910.07467)
 *     layer  y = (x - mean(x)) / sqrt(var(x) + eps) * w + b        (arXiv 1607.06450)
 *     l2     y = x / max(sqrt(sum(x^2)), eps) * w + b
 *     l2_sum y = x / sqrt(sum(x^2) + eps) * w + b                  (arXiv 2412.06464, its code) */
#include <math.h>

#include "kernels/ref/ref.h"

static void write(const float *x, double mean, double scale, const float *w, const float *b,
                  float *y, uint32_t width) {
    for (uint32_t i = 0; i < width; i++) {
        double v = (x[i] - mean) * scale;
        if (w) v *= w[i];
        if (b) v += b[i];
        y[i] = (float)v;
    }
}

static double squares(const float *x, uint32_t width) {
    double sum = 0;
    for (uint32_t i = 0; i < width; i++) sum += (double)x[i] * x[i];
    return sum;
}

void norm_rms_ref(const float *x, const float *w, const float *b, float eps, float *y,
                  uint32_t width) {
    write(x, 0, 1 / sqrt(squares(x, width) / width + eps), w, b, y, width);
}

void norm_layer_ref(const float *x, const float *w, const float *b, float eps, float *y,
                    uint32_t width) {
    double sum = 0, variance = 0;
    for (uint32_t i = 0; i < width; i++) sum += x[i];
    double mean = sum / width;
    for (uint32_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean);
    write(x, mean, 1 / sqrt(variance / width + eps), w, b, y, width);
}

void norm_l2_ref(const float *x, const float *w, const float *b, float eps, float *y,
                 uint32_t width) {
    double length = sqrt(squares(x, width));
    write(x, 0, 1 / (length < (double)eps ? (double)eps : length), w, b, y, width);
}

void norm_l2_sum_ref(const float *x, const float *w, const float *b, float eps, float *y,
                     uint32_t width) {
    write(x, 0, 1 / sqrt(squares(x, width) + eps), w, b, y, width);
}
