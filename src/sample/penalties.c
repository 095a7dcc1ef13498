/* SPDX-License-Identifier: Apache-2.0
 * penalties.c: makes tokens of the last penalty_last_n positions less likely. The repetition
 * penalty (Keskar et al. 2019) divides a positive logit and multiplies another one, once; the
 * frequency penalty is then subtracted for each occurrence and the presence penalty once (as in
 * OpenAI's API). */
#include <float.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/sampler.h"

static bool active(const ob_sampling *settings) {
    return settings->penalty_last_n != 0 &&
           (settings->repeat_penalty != 1 || settings->frequency_penalty != 0 ||
            settings->presence_penalty != 0);
}

/* How often each token occurs; all zero between steps. */
static ob_status open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error) {
    (void)settings;
    *state = calloc(vocab->size, sizeof(uint32_t));
    return *state ? OB_OK : error_memory(error, "token counts", vocab->size * sizeof(uint32_t));
}

/* Large penalties must not make infinities out of finite logits. */
static float penalized(float logit, uint32_t count, const ob_sampling *settings) {
    double x = (double)logit, repeat = (double)settings->repeat_penalty;
    x = x > 0 ? x / repeat : x * repeat;
    x -= (double)count * (double)settings->frequency_penalty + (double)settings->presence_penalty;
    return x > (double)FLT_MAX ? FLT_MAX : x < (double)-FLT_MAX ? -FLT_MAX : (float)x;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    uint32_t *count = context->state;
    size_t n = context->history_n, last = (size_t)context->settings->penalty_last_n;
    if (context->settings->penalty_last_n < 0 || last > n) last = n;
    const int32_t *window = context->history + (n - last);
    for (size_t i = 0; i < last; i++)
        if (window[i] >= 0 && (uint32_t)window[i] < list->vocab) count[window[i]]++;
    sample_list_edit(list);
    for (size_t i = 0; i < last; i++) {
        float *logit = sample_list_find(list, window[i]);
        if (!logit || !count[window[i]]) continue; /* or done already */
        *logit = penalized(*logit, count[window[i]], context->settings);
        count[window[i]] = 0;
    }
    sample_list_edited(list, window, last);
    for (size_t i = 0; i < last; i++) /* those that are no candidates */
        if (window[i] >= 0 && (uint32_t)window[i] < list->vocab) count[window[i]] = 0;
}

const struct sampler sampler_penalties = {
    .name = "penalties", .active = active, .apply = apply, .open = open, .close = free};
