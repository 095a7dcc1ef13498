/* SPDX-License-Identifier: Apache-2.0
 *
 * compress.c: the mean of kv over a block's tokens so far, in each column weighted by
 * exp(gate + bias), the bias by the place in the block; overlapping blocks: that of the second half
 * of the columns, and of the first half over all of the block before (DeepSeek-V4, section 2.3).
 * Sums are kept as multiples of exp(-top), top being the largest exponent in them. */
#include <math.h>

#include "kernels/ref/ref.h"

struct mean { double sum, weights, top; };

static struct mean with(struct mean m, double exponent, double v) {
    double top = m.weights > 0 && m.top > exponent ? m.top : exponent;
    double e = m.weights > 0 ? exp(m.top - top) : 0, f = exp(exponent - top);
    return (struct mean){e * m.sum + f * v, e * m.weights + f, top};
}

static struct mean load(const float *p, uint32_t cols) {
    return (struct mean){(double)p[0], (double)p[cols], (double)p[2 * (size_t)cols]};
}

static void store(float *p, uint32_t cols, struct mean m) {
    p[0] = (float)m.sum;
    p[cols] = (float)m.weights;
    p[2 * (size_t)cols] = (float)m.top;
}

void compress_ref(const struct compress_job *j, uint32_t col0, uint32_t col1) {
    uint32_t all = j->overlaps ? 2 * j->cols : j->cols;
    size_t half = all - j->cols;
    for (uint32_t c = col0; c < col1; c++) {
        float *next = j->state + 3 * (size_t)j->cols + c;
        for (uint32_t t = 0; t < j->tokens; t++) {
            uint32_t place = (j->at + t) % j->every;
            size_t at = (size_t)t * all + c, bias = (size_t)place * all + c;
            struct mean own = load(j->state + c, j->cols), first = {0};
            if (j->overlaps) first = load(next, j->cols);
            if (place == 0) own = first;
            if (place == 0) first = (struct mean){0};
            own = with(own, (double)j->gate[at + half] + (double)j->bias[bias + half],
                       (double)j->kv[at + half]);
            j->y[(size_t)t * j->cols + c] = (float)(own.sum / own.weights);
            store(j->state + c, j->cols, own);
            if (!j->overlaps) continue;
            first = with(first, (double)j->gate[at] + (double)j->bias[bias], (double)j->kv[at]);
            store(next, j->cols, first);
        }
    }
}
