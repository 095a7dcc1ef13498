/* SPDX-License-Identifier: Apache-2.0
 * top_p.c: nucleus sampling (Holtzman et al. 2019): keeps the smallest set of most likely
 * candidates whose probability sums to at least p, at least one.
 *
 * A flat distribution keeps tens of thousands of candidates, too many to sort for each token.
 * So weights are summed by bins of logits; only the bin where the sum reaches p is sorted. */
#include "sample/sampler.h"

enum { BINS = 1024, BINS_PER_NAT = 32 }; /* the last bin takes all below exp(-32) of the best */

static ob_status check(const ob_sampling *settings, ob_error *error) {
    float p = settings->top_p;
    if (!(p >= 0 && p <= 1)) return sample_refuse(error, "top_p", "from 0 to 1", (double)p);
    return OB_OK;
}

static bool active(const ob_sampling *settings) { return settings->top_p < 1; }

static uint32_t bin_of(float best, float logit) {
    float at = (best - logit) * BINS_PER_NAT;
    return at < BINS - 1 ? (uint32_t)at : BINS - 1;
}

/* How many leading candidates of the sorted list weigh at least `wanted`. */
static uint32_t reach(struct sample_list *list, float best, double wanted) {
    for (uint32_t i = 0; i < list->n; i++) list->weight[i] = list->item[i].logit;
    sample_exp_sum(list->weight, list->n, best, list->weight);
    double sum = 0;
    for (uint32_t i = 0; i < list->n; i++)
        if ((sum += (double)list->weight[i]) >= wanted) return i + 1;
    return list->n;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    float best = sample_list_best(list).logit;
    double wanted = (double)context->settings->top_p * sample_list_weigh(list);
    double weight[BINS] = {0};
    for (uint32_t i = 0; i < list->n; i++)
        weight[bin_of(best, list->item[i].logit)] += (double)list->weight[i];
    uint32_t cut = 0;
    while (cut < BINS - 1 && weight[cut] < wanted) wanted -= weight[cut++];

    /* Candidates in bins before the cut to the front, then those in it; the rest is dropped. A
     * sorted prefix stays one: its bins ascend. */
    struct sample_item *item = list->item;
    uint32_t above = 0, n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        struct sample_item moving = item[i];
        uint32_t bin = bin_of(best, moving.logit);
        if (bin > cut) continue;
        item[i] = item[n];
        item[n] = moving;
        if (bin < cut) {
            item[n] = item[above];
            item[above++] = moving;
        }
        n++;
    }
    struct sample_list edge = {.item = item + above, .weight = list->weight, .n = n - above};
    sample_list_sort(&edge, edge.n);
    list->n = above + reach(&edge, best, wanted);
    if (list->sorted > list->n) list->sorted = list->n;
}

const struct sampler sampler_top_p = {"top_p", check, active, apply};
