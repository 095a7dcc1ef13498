/* SPDX-License-Identifier: Apache-2.0
 * top_p.c: nucleus sampling (Holtzman et al. 2019): keeps the smallest set of most likely
 * candidates whose probability sums to at least p, at least one.
 *
 * Of a whole vocabulary most candidates are far below the set: only those within some nats of the
 * best are looked at, more and more until their sum is enough. */
#include <math.h>

#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->top_p < 1; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    float p = context->settings->top_p;
    struct sample_rank rank = {.center = INFINITY,
                               .least = (uint32_t)context->settings->min_keep};
    if (!list->whole) {
        rank.wanted = (double)p * sample_list_weigh(list);
        sample_list_cut(list, &rank);
        return;
    }
    float best = sample_list_best(list).logit;
    uint32_t vocab = list->n;
    rank.wanted = (double)p * sample_passes()->exp_sum(list->logit, vocab, best, NULL);
    for (float nats = 4;; nats *= 2) {
        float low = nats < 64 ? best - nats : -INFINITY;
        list->whole = true;
        list->n = vocab;
        sample_list_keep(list, low, INFINITY);
        if (low > -INFINITY && list->n < rank.least) continue;
        if (sample_list_weigh(list) >= rank.wanted || low == -INFINITY) break;
    }
    sample_list_cut(list, &rank);
}

const struct sampler sampler_top_p = {
    .name = "top_p", .keeps_best = true, .active = active, .apply = apply};
