/* SPDX-License-Identifier: Apache-2.0
 * typ_p.c: locally typical sampling (Meister et al. 2022): keeps the candidates whose surprise
 * -log p is nearest to the entropy, the fewest whose probability sums to more than typical_p.
 *
 * With log p = x - log sum exp, that distance is the logit's own distance from one number: the
 * center. Of a whole vocabulary only a band around it is looked at, wider and wider until its sum
 * is enough. */
#include <math.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->typical_p < 1; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    float best = sample_list_best(list).logit;
    uint32_t vocab = list->n;
    const float *logit = list->logit;
    if (!list->whole) {
        for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
        logit = list->weight;
    }
    struct sample_entropy all = sample_passes()->entropy(logit, vocab, best);
    /* entropy = log sum - moment / sum, both of x - best */
    struct sample_rank rank = {.center = (float)((double)best + all.moment / all.sum),
                               .wanted = (double)context->settings->typical_p * all.sum,
                               .beyond = true,
                               .least = (uint32_t)context->settings->min_keep};
    for (float nats = 4; list->whole; nats *= 2) {
        bool wide = nats >= 64;
        sample_list_keep(list, wide ? -INFINITY : rank.center - nats,
                         wide ? INFINITY : rank.center + nats);
        double sum = 0;
        if (list->n && list->n >= rank.least) {
            for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
            sum = sample_passes()->exp_sum(list->weight, list->n, best, list->weight);
        }
        if (wide || sum > rank.wanted) break;
        list->whole = true;
        list->n = vocab;
    }
    for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
    sample_passes()->exp_sum(list->weight, list->n, best, list->weight);
    list->sorted = 0;
    sample_list_cut(list, &rank);
}

const struct sampler sampler_typ_p = {.name = "typ_p", .active = active, .apply = apply};
