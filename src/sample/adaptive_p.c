/* SPDX-License-Identifier: Apache-2.0
 * adaptive_p.c: adaptive-p (llama.cpp, pull request 17927): prefers candidates whose probability is
 * near a target, which moves so that the average of what was drawn comes to adaptive_target. It
 * runs last. The new logit of a candidate falls with its distance d = |p - target| / 0.3 as
 * 5 - 10 d^2 / (1 + d): a parabola near the target, a line far from it. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/sampler.h"

static const float width = 0.3f, peak = 5, sharpness = 10;

/* The average of the drawn candidates' probabilities, before the change, weighs the one of i
 * tokens ago with decay^i. It starts as if the target had always been met. */
struct adaptive {
    double sum, weight;
    float p[]; /* [vocab] of the step's candidates */
};

static bool active(const ob_sampling *settings) { return settings->adaptive_target >= 0; }

static ob_status open(const ob_sampling *settings, const struct sample_vocab *vocab, void **state,
                      ob_error *error) {
    size_t bytes = sizeof(struct adaptive) + vocab->size * sizeof(float);
    struct adaptive *a = *state = malloc(bytes);
    if (!a) return error_memory(error, "adaptive_p", bytes);
    a->weight = 1 / (1 - (double)settings->adaptive_decay);
    a->sum = (double)settings->adaptive_target * a->weight;
    return OB_OK;
}

static void apply(struct sample_list *list, const struct sample_context *context) {
    struct adaptive *a = context->state;
    sample_list_gather(list);
    double sum = sample_list_weigh(list);
    float target =
        (float)(2 * (double)context->settings->adaptive_target - a->sum / a->weight);
    target = fminf(1, fmaxf(0, target));
    for (uint32_t i = 0; i < list->n; i++) {
        a->p[i] = (float)((double)list->weight[i] / sum);
        float d = fabsf(a->p[i] - target) / width;
        list->item[i].logit = peak - sharpness * d * d / (1 + d);
    }
    list->sorted = 0;
}

static void drawn(const struct sample_list *list, const struct sample_context *context, uint32_t i,
                  double p) {
    struct adaptive *a = context->state;
    double decay = (double)context->settings->adaptive_decay;
    (void)list, (void)p;
    a->sum = (double)a->p[i] + decay * a->sum;
    a->weight = 1 + decay * a->weight;
}

const struct sampler sampler_adaptive_p = {.name = "adaptive_p", .last = true, .active = active,
                                           .apply = apply, .open = open, .close = free,
                                           .drawn = drawn};
