/* SPDX-License-Identifier: Apache-2.0
 * temperature.c: divides the logits; at 0 only the best candidate is left. The dynamic one
 * (kalomaze 2023) lies dynatemp_range around it: lowest for a candidate that is sure, highest for
 * equal ones, in between by the entropy over its greatest, log n, to the power of the exponent. */
#include <math.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) {
    return settings->temperature != 1 || settings->dynatemp_range > 0;
}

static double dynamic(struct sample_list *list, const ob_sampling *settings) {
    double t = (double)settings->temperature, range = (double)settings->dynatemp_range;
    const float *logit = list->logit;
    if (!list->whole) {
        for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
        logit = list->weight;
    }
    struct sample_entropy all =
        sample_passes()->entropy(logit, list->n, sample_list_best(list).logit);
    if (all.n < 2) return 1; /* whatever it is */
    double entropy = fmax(0, log(all.sum) - all.moment / all.sum) / log((double)all.n);
    double low = fmax(0, t - range), high = t + range;
    return low + (high - low) * pow(fmin(1, entropy), (double)settings->dynatemp_exponent);
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    const ob_sampling *settings = context->settings;
    float t = settings->dynatemp_range > 0 ? (float)dynamic(list, settings)
                                           : settings->temperature;
    /* A best logit that overflows belongs to a temperature so small that it is as good as 0. */
    if (t == 0 || !isfinite(sample_list_best(list).logit / t)) sample_list_keep_best(list);
    else sample_list_divide(list, t);
}

const struct sampler sampler_temperature = {
    .name = "temperature", .keeps_best = true, .active = active, .apply = apply};
