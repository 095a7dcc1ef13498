/* SPDX-License-Identifier: Apache-2.0
 * xtc.c: exclude top choices (p-e-w 2024): with probability xtc_probability, drops all candidates
 * of at least the threshold's probability but the least likely of them. Whether it does comes from
 * a random number of its own. */
#include "base/rng.h"
#include "sample/sampler.h"

enum { STREAM = 0x787463 }; /* "xtc": apart from the numbers of the draw */

static bool active(const ob_sampling *settings) {
    return settings->xtc_probability > 0 && settings->xtc_threshold <= 0.5f;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    const ob_sampling *settings = context->settings;
    double chance = rng_unit(rng_mix(settings->seed ^ STREAM), context->history_n);
    if (chance >= (double)settings->xtc_probability) return;
    sample_list_gather(list);
    double least = (double)settings->xtc_threshold * sample_list_weigh(list);
    uint32_t above = 0, n = 0;
    struct sample_item last = {0};
    for (uint32_t i = 0; i < list->n; i++) {
        struct sample_item item = list->item[i];
        if ((double)list->weight[i] < least) continue;
        bool later = item.logit < last.logit || (item.logit == last.logit && item.id > last.id);
        if (above++ == 0 || later) last = item;
    }
    if (above < 2 || list->n - (above - 1) < (uint32_t)settings->min_keep) return;
    for (uint32_t i = 0; i < list->n; i++)
        if ((double)list->weight[i] < least || list->item[i].id == last.id)
            list->item[n++] = list->item[i];
    list->n = n;
    list->sorted = list->sorted > above - 1 ? list->sorted - (above - 1) : 0;
}

const struct sampler sampler_xtc = {.name = "xtc", .active = active, .apply = apply};
