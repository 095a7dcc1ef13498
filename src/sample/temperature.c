/* SPDX-License-Identifier: Apache-2.0
 * temperature.c: divides the logits; at 0 only the best candidate is left. */
#include <math.h>

#include "sample/sampler.h"

static ob_status check(const ob_sampling *settings, ob_error *error) {
    float t = settings->temperature;
    if (!(t >= 0 && isfinite(t)))
        return sample_refuse(error, "temperature", "at least 0", (double)t);
    return OB_OK;
}

static bool active(const ob_sampling *settings) { return settings->temperature != 1; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    float t = context->settings->temperature;
    /* A best logit that overflows belongs to a temperature so small that it is as good as 0. */
    if (t == 0 || !isfinite(sample_list_best(list).logit / t)) {
        sample_list_keep_best(list);
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) list->item[i].logit /= t;
}

const struct sampler sampler_temperature = {"temperature", check, active, apply};
