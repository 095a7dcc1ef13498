/* SPDX-License-Identifier: Apache-2.0
 * top_k.c: keeps the k greatest candidates; equal ones by lower id (Fan et al. 2018). */
#include "sample/sampler.h"

static ob_status check(const ob_sampling *settings, ob_error *error) {
    (void)settings, (void)error; /* every number means something: <= 0 is off */
    return OB_OK;
}

static bool active(const ob_sampling *settings) { return settings->top_k > 0; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    uint32_t k = (uint32_t)context->settings->top_k;
    if (k >= list->n) return;
    sample_list_sort(list, k);
    list->n = k;
    list->sorted = k;
}

const struct sampler sampler_top_k = {"top_k", check, active, apply};
