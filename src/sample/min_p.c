/* SPDX-License-Identifier: Apache-2.0
 * min_p.c: drops candidates whose probability is less than min_p times that of the best one (Nguyen
 * et al. 2024). A ratio of probabilities is a difference of logits, so no softmax is needed. */
#include <math.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->min_p > 0; }

/* The greatest float at or below a limit: the comparison is exact. */
static float at_least(double x) {
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    uint32_t keep = (uint32_t)context->settings->min_keep;
    float low = at_least((double)sample_list_best(list).logit +
                         log((double)context->settings->min_p));
    if (keep > 1) { /* the limit may leave too few: then it is the logit of the last that stays */
        sample_list_gather(list);
        sample_list_sort(list, keep);
        float last = list->item[(keep < list->n ? keep : list->n) - 1].logit;
        if (last < low) {
            list->n = keep < list->n ? keep : list->n;
            list->sorted = list->n;
            return;
        }
    }
    sample_list_keep(list, low, INFINITY);
}

const struct sampler sampler_min_p = {
    .name = "min_p", .keeps_best = true, .active = active, .apply = apply};
