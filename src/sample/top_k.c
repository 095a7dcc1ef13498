/* SPDX-License-Identifier: Apache-2.0
 * top_k.c: keeps the k greatest candidates; equal ones by lower id (Fan et al. 2018). */
#include "sample/sampler.h"

static bool active(const ob_sampling *settings) { return settings->top_k > 0; }

static void apply(struct sample_list *list, const struct sample_context *context) {
    sample_list_top(list, (uint32_t)context->settings->top_k);
}

const struct sampler sampler_top_k = {
    .name = "top_k", .keeps_best = true, .active = active, .apply = apply};
