/* SPDX-License-Identifier: Apache-2.0
 * min_p.c: drops candidates whose probability is less than min_p times that of the best one (Nguyen
 * et al. 2024). A ratio of probabilities is a difference of logits, so no softmax is needed. */
#include <math.h>

#include "sample/sampler.h"

static ob_status check(const ob_sampling *settings, ob_error *error) {
    float p = settings->min_p;
    if (!(p >= 0 && p <= 1)) return sample_refuse(error, "min_p", "from 0 to 1", (double)p);
    return OB_OK;
}

static bool active(const ob_sampling *settings) { return settings->min_p > 0; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    double least = (double)sample_list_best(list).logit + log((double)context->settings->min_p);
    uint32_t n = 0, sorted = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if ((double)list->item[i].logit < least) continue;
        if (i < list->sorted) sorted++;
        list->item[n++] = list->item[i];
    }
    list->n = n;
    list->sorted = sorted;
}

const struct sampler sampler_min_p = {"min_p", check, active, apply};
