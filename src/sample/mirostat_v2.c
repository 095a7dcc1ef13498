/* SPDX-License-Identifier: Apache-2.0
 * mirostat_v2.c: mirostat 2.0 (Basu et al. 2020): drops candidates whose surprise -log2 p is above
 * mu, which follows what was drawn as in mirostat.c. */
#include <math.h>
#include <stdlib.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->mirostat == 2; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    const double *mu = context->state;
    float best = sample_list_best(list).logit;
    double sum = list->whole ? sample_passes()->exp_sum(list->logit, list->n, best, NULL)
                             : sample_list_weigh(list);
    /* -log2 p <= mu, with log p = x - best - log sum */
    double low = (double)best + log(sum) - *mu * log(2);
    if (low > (double)best) sample_list_keep_best(list);
    else sample_list_keep(list, (float)low, INFINITY);
}

const struct sampler sampler_mirostat_v2 = {.name = "mirostat_v2", .internal = true,
                                            .keeps_best = true, .active = active, .apply = apply,
                                            .open = mirostat_open, .close = free,
                                            .drawn = mirostat_drawn};
