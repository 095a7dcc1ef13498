/* SPDX-License-Identifier: Apache-2.0
 *
 * route.c: the experts of a token and their weights (Shazeer et al., arXiv 1701.06538, without
 * noise):
 *     softmax         exp(x_i) / sum over all experts      (OLMoE, arXiv 2409.02060)
 *     softmax_chosen  exp(x_i) / sum over those chosen     (Mixtral, arXiv 2401.04088, section 2)
 * Experts are chosen by logit, of which softmax keeps the order, so a choice is never a matter of
 * rounding. */
#include <math.h>

#include "kernels/ref/ref.h"

static bool above(float a, float b) { return a > b || (isnan(a) && !isnan(b)); }

void route_top(const float *x, uint32_t experts, uint32_t used, float *expert) {
    float logit[ROUTE_USED_MAX];
    for (uint32_t i = 0, n = 0; i < experts; i++) {
        uint32_t at = n < used ? n++ : used;
        while (at > 0 && above(x[i], logit[at - 1])) {
            if (at < used) logit[at] = logit[at - 1], expert[at] = expert[at - 1];
            at--;
        }
        if (at < used) logit[at] = x[i], expert[at] = (float)i;
    }
}

void route_softmax_ref(const float *x, uint32_t experts, uint32_t used, float *out) {
    route_top(x, experts, used, out + used);
    double top = x[(uint32_t)out[used]], sum = 0;
    for (uint32_t i = 0; i < experts; i++) sum += exp(x[i] - top);
    for (uint32_t i = 0; i < used; i++)
        out[i] = (float)(exp(x[(uint32_t)out[used + i]] - top) / sum);
}

void route_softmax_chosen_ref(const float *x, uint32_t experts, uint32_t used, float *out) {
    route_top(x, experts, used, out + used);
    double top = x[(uint32_t)out[used]], sum = 0;
    for (uint32_t i = 0; i < used; i++) sum += exp(x[(uint32_t)out[used + i]] - top);
    for (uint32_t i = 0; i < used; i++)
        out[i] = (float)(exp(x[(uint32_t)out[used + i]] - top) / sum);
}
