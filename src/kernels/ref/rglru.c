/* SPDX-License-Identifier: Apache-2.0
 *
 * rglru.c: h = a * h + sqrt(1 - a^2) * x with a = exp(log_decay) for each column; at the start of a
 * sequence h = x (the real-gated linear recurrent unit of Griffin, arXiv 2402.19427, section 2.4,
 * behind its gates). */
#include <math.h>

#include "kernels/ref/ref.h"

void rglru_ref(const struct rglru_job *j, uint32_t col0, uint32_t col1) {
    for (uint32_t c = col0; c < col1; c++)
        for (uint32_t t = 0; t < j->tokens; t++) {
            size_t at = (size_t)t * j->cols + c;
            double log_decay = j->log_decay[at], x = j->x[at];
            double h = j->starts && t == 0
                           ? x
                           : exp(log_decay) * j->state[c] + sqrt(-expm1(2 * log_decay)) * x;
            j->y[at] = j->state[c] = (float)h;
        }
}
