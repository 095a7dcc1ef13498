/* SPDX-License-Identifier: Apache-2.0
 * penalties.c: makes tokens of the last penalty_last_n positions less likely. The repetition
 * penalty (Keskar et al. 2019) divides a positive logit and multiplies another one, once; the
 * frequency penalty is then subtracted for each occurrence and the presence penalty once (as in
 * OpenAI's API). */
#include <float.h>
#include <math.h>

#include "sample/sampler.h"

static ob_status check(const ob_sampling *settings, ob_error *error) {
    float repeat = settings->repeat_penalty, frequency = settings->frequency_penalty,
          presence = settings->presence_penalty;
    if (!(repeat > 0 && isfinite(repeat)))
        return sample_refuse(error, "repeat_penalty", "above 0", (double)repeat);
    if (!isfinite(frequency))
        return sample_refuse(error, "frequency_penalty", "finite", (double)frequency);
    if (!isfinite(presence))
        return sample_refuse(error, "presence_penalty", "finite", (double)presence);
    if (settings->penalty_last_n < -1)
        return sample_refuse(error, "penalty_last_n", "at least -1", settings->penalty_last_n);
    return OB_OK;
}

static bool active(const ob_sampling *settings) {
    return settings->penalty_last_n != 0 &&
           (settings->repeat_penalty != 1 || settings->frequency_penalty != 0 ||
            settings->presence_penalty != 0);
}

/* Large penalties must not make infinities out of finite logits. */
static float penalized(float logit, uint32_t count, const ob_sampling *settings) {
    double x = (double)logit, repeat = (double)settings->repeat_penalty;
    x = x > 0 ? x / repeat : x * repeat;
    x -= (double)count * (double)settings->frequency_penalty + (double)settings->presence_penalty;
    return x > (double)FLT_MAX ? FLT_MAX : x < (double)-FLT_MAX ? -FLT_MAX : (float)x;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    size_t n = context->history_n, last = (size_t)context->settings->penalty_last_n;
    if (context->settings->penalty_last_n < 0 || last > n) last = n;
    const int32_t *window = context->history + (n - last);
    for (size_t i = 0; i < last; i++)
        if (window[i] >= 0 && (uint32_t)window[i] < list->vocab) list->count[window[i]]++;
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t count = list->count[list->item[i].id];
        if (count) list->item[i].logit = penalized(list->item[i].logit, count, context->settings);
    }
    for (size_t i = 0; i < last; i++)
        if (window[i] >= 0 && (uint32_t)window[i] < list->vocab) list->count[window[i]] = 0;
    list->sorted = 0;
}

const struct sampler sampler_penalties = {"penalties", check, active, apply};
