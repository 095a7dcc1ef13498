/* SPDX-License-Identifier: Apache-2.0
 *
 * route.c: the experts of a token and their weights (Shazeer et al., arXiv 1701.06538, without
 * noise). The score s of an expert of logit x:
 *     softmax         exp(x) / sum over all experts          (OLMoE, arXiv 2409.02060)
 *     softmax_chosen  exp(x) / sum over those chosen         (Mixtral, arXiv 2401.04088, section 2)
 *     sigmoid         1 / (1 + exp(-x))                      (DeepSeek-V3, arXiv 2412.19437, 2.1.2)
 *     sqrt_softplus   sqrt(log(1 + exp(x)))
 *     identity        x
 * Chosen are the largest s + bias; with groups, of experts in the best groups alone (DeepSeek-V2,
 * arXiv 2405.04434, section 2.1.3); or a token's are given. Experts used always follow, whatever
 * their scores. Weights are the scores, divided by their sum if so asked, times the scale.
 *
 *     sparsemixer     one after the other the largest x of those left; its weight is
 *                     exp(x) / sum over those left with (x - x_j) / max(|x_j|, x) <= 2 jitter
 *                     (Phi-3.5-MoE, arXiv 2409.12136, without its noise) */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

static bool above(float a, float b) { return a > b || (isnan(a) && !isnan(b)); }

static void top_of(const float *x, uint32_t experts, uint32_t used, float *expert) {
    float logit[ROUTE_USED_MAX];
    for (uint32_t i = 0, n = 0; i < experts; i++) {
        uint32_t at = n < used ? n++ : used;
        while (at > 0 && above(x[i], logit[at - 1])) {
            if (at < used) logit[at] = logit[at - 1], expert[at] = expert[at - 1];
            at--;
        }
        if (at < used) logit[at] = x[i], expert[at] = (float)i;
    }
}

/* What the groups of experts are worth. */
static void group_values(const struct route_job *job, const float *by, float *value) {
    uint32_t size = job->experts / job->groups;
    for (uint32_t g = 0; g < job->groups; g++) {
        float best[2];
        const float *x = by + (size_t)g * size;
        uint32_t n = job->group == ROUTE_GROUP_TOP2 ? 2 : 1;
        top_of(x, size, n, best);
        value[g] = x[(uint32_t)best[0]];
        if (n == 2) value[g] += x[(uint32_t)best[1]];
    }
}

/* Puts what stands for the experts of all groups but the best in their place. */
static void mask_groups(const struct route_job *job, float *by) {
    float value[ROUTE_GROUPS_MAX], best[ROUTE_GROUPS_MAX];
    uint32_t size = job->experts / job->groups;
    group_values(job, by, value);
    top_of(value, job->groups, job->groups, best);
    for (uint32_t i = job->groups_used; i < job->groups; i++)
        for (uint32_t e = 0; e < size; e++)
            by[(uint32_t)best[i] * size + e] = job->group_zero ? 0 : -INFINITY;
}

void route_choose(const struct route_job *job, const float *logits, const float *score,
                  float *expert) {
    uint32_t choices = job->experts - job->always, chosen = job->used - job->always;
    float by[ROUTE_EXPERTS_MAX];
    const float *from = job->bias ? by : logits;
    if (job->chosen) {
        memcpy(expert, job->chosen, job->used * sizeof *expert);
        return;
    }
    if (job->bias || job->groups > 1) {
        const float *x = job->bias_to_logits ? logits : score;
        for (uint32_t e = 0; e < choices; e++) by[e] = job->bias ? x[e] + job->bias[e] : x[e];
        if (job->groups > 1) mask_groups(job, by);
        from = by;
    }
    top_of(from, choices, chosen, expert);
    for (uint32_t i = 0; i < job->always; i++) expert[chosen + i] = (float)(choices + i);
}

static double score_of(enum route_score kind, double x) {
    switch (kind) {
    case ROUTE_SIGMOID: return act_value(ACT_SIGMOID, x);
    case ROUTE_SQRT_SOFTPLUS: return sqrt(act_value(ACT_SOFTPLUS, x));
    default: return x;
    }
}

static void softmax(const double *x, uint32_t n, double *y) {
    double top = x[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    for (uint32_t i = 0; i < n; i++) sum += y[i] = exp(x[i] - top);
    for (uint32_t i = 0; i < n; i++) y[i] /= sum;
}

/* The threshold is taken in float, as the models were trained. */
static double sparse_weight(const struct route_job *job, const float *x, const float *expert,
                            uint32_t i) {
    double sum = 0;
    float top = x[(uint32_t)expert[i]];
    for (uint32_t e = 0; e < job->experts; e++) {
        bool taken = false;
        for (uint32_t k = 0; k < i; k++) taken |= expert[k] == (float)e;
        float size = fabsf(x[e]) > top ? fabsf(x[e]) : top;
        if (!taken && !((top - x[e]) / size > 2 * job->jitter_eps)) sum += exp((double)x[e] - top);
    }
    return 1 / sum;
}

static void finish(const struct route_job *job, double *weight, float *out) {
    const float *expert = out + job->used;
    double sum = 0;
    for (uint32_t i = 0; i < job->used; i++) sum += weight[i];
    for (uint32_t i = 0; i < job->used; i++) {
        double w = weight[i];
        if (job->normalize) w /= sum + (double)job->normalize_eps;
        w *= (double)job->scale;
        if (job->expert_scale) w *= (double)job->expert_scale[(uint32_t)expert[i]];
        out[i] = (float)w;
    }
}

void route_ref(const struct route_job *job, const float *logits, float *out) {
    double score[ROUTE_EXPERTS_MAX], weight[ROUTE_USED_MAX];
    float rounded[ROUTE_EXPERTS_MAX] = {0}, *expert = out + job->used;
    for (uint32_t e = 0; e < job->experts; e++) score[e] = score_of(job->score, (double)logits[e]);
    if (job->score == ROUTE_SOFTMAX) softmax(score, job->experts, score);
    for (uint32_t e = 0; e < job->experts; e++) rounded[e] = (float)score[e];
    route_choose(job, logits, rounded, expert);
    for (uint32_t i = 0; i < job->used; i++)
        weight[i] = job->score == ROUTE_SPARSEMIXER ? sparse_weight(job, logits, expert, i)
                                                    : score[(uint32_t)expert[i]];
    if (job->score == ROUTE_SOFTMAX_CHOSEN) softmax(weight, job->used, weight);
    finish(job, weight, out);
}
