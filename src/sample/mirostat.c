/* SPDX-License-Identifier: Apache-2.0
 * mirostat.c: mirostat (Basu et al. 2020): keeps the k most likely candidates, k from an estimate
 * of how steeply the distribution falls (its Zipf exponent s, least squares over the first 100)
 * and a bound on the surprise, mu, which follows what was drawn: mu -= eta (surprise - tau). */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/sampler.h"

enum { FIRST = 100 };

static bool active(const ob_sampling *settings) { return settings->mirostat == 1; }

ob_status mirostat_open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                        ob_error *error) {
    (void)vocab;
    double *mu = *state = malloc(sizeof *mu);
    if (!mu) return error_memory(error, "mirostat", sizeof *mu);
    *mu = 2 * (double)settings->mirostat_tau;
    return OB_OK;
}

/* The exponent of the sorted list's beginning. */
static double exponent(const struct sample_list *list) {
    double product = 0, square = 0;
    for (uint32_t i = 0; i + 1 < list->sorted; i++) {
        double t = log((i + 2.0) / (i + 1.0));
        product += t * ((double)list->item[i].logit - (double)list->item[i + 1].logit);
        square += t * t;
    }
    return product / square;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    const double *mu = context->state;
    sample_list_gather(list);
    sample_list_sort(list, FIRST);
    if (list->n < 2) return;
    struct sample_list first = *list;
    if (first.sorted > FIRST) first.sorted = FIRST;
    double s = exponent(&first), beyond = s - 1;
    double k = pow(beyond * exp2(*mu) / (1 - pow((double)list->vocab, -beyond)), 1 / s);
    /* No number: a flat distribution, s = 0, or s = 1. */
    if (k >= 1 && k < (double)list->n) sample_list_top(list, (uint32_t)k);
    else if (!(k >= 1)) sample_list_top(list, 1);
}

void mirostat_drawn(const struct sample_list *list, const struct sample_context *context,
                    uint32_t i, double p) {
    double *mu = context->state;
    (void)list, (void)i;
    *mu -= (double)context->settings->mirostat_eta *
           (-log2(p) - (double)context->settings->mirostat_tau);
}

const struct sampler sampler_mirostat = {.name = "mirostat", .internal = true, .keeps_best = true,
                                         .active = active, .apply = apply, .open = mirostat_open,
                                         .close = free, .drawn = mirostat_drawn};
