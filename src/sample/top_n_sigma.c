/* SPDX-License-Identifier: Apache-2.0
 * top_n_sigma.c: drops candidates whose logit is more than n standard deviations of all logits
 * below the best (Tang et al. 2024). */
#include <math.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->top_n_sigma > 0; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    const float *logit = list->logit;
    if (!list->whole) {
        for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
        logit = list->weight;
    }
    struct sample_moments all = sample_passes()->moments(logit, list->n);
    double low = (double)sample_list_best(list).logit -
                 (double)context->settings->top_n_sigma * all.deviation;
    sample_list_keep(list, low < -3e38 ? -INFINITY : (float)low, INFINITY);
}

const struct sampler sampler_top_n_sigma = {
    .name = "top_n_sigma", .keeps_best = true, .active = active, .apply = apply};
