/* SPDX-License-Identifier: Apache-2.0
 * experts.cu: routers, the grouping of a step's pairs, and their sum. A router is a thread a token:
 * its few numbers are compared one after the other, in double, as kernels/ref/route.c has it. */
#include "devices/cuda/kernels/common.cuh"

/* ---- the experts of a token ---- */

__device__ bool above(float x, float y) { return x > y || (isnan(x) && !isnan(y)); }

__device__ void top_of(const float *x, uint32_t n, uint32_t used, float *expert) {
    float logit[ROUTE_USED_MAX];
    for (uint32_t i = 0, have = 0; i < n; i++) {
        uint32_t at = have < used ? have++ : used;
        while (at > 0 && above(x[i], logit[at - 1])) {
            if (at < used) logit[at] = logit[at - 1], expert[at] = expert[at - 1];
            at--;
        }
        if (at < used) logit[at] = x[i], expert[at] = (float)i;
    }
}

__device__ void mask_groups(const struct cuda_route &a, float *by) {
    float value[ROUTE_GROUPS_MAX], order[ROUTE_GROUPS_MAX], best[2];
    uint32_t size = a.experts / a.groups;
    for (uint32_t g = 0; g < a.groups; g++) {
        const float *x = by + (size_t)g * size;
        top_of(x, size, a.group == ROUTE_GROUP_TOP2 ? 2 : 1, best);
        value[g] = x[(uint32_t)best[0]];
        if (a.group == ROUTE_GROUP_TOP2) value[g] += x[(uint32_t)best[1]];
    }
    top_of(value, a.groups, a.groups, order);
    for (uint32_t i = a.groups_used; i < a.groups; i++)
        for (uint32_t e = 0; e < size; e++)
            by[(uint32_t)order[i] * size + e] = a.group_zero ? 0 : -INFINITY;
}

__device__ void choose(const struct cuda_route &a, const float *logits, const float *score,
                       float *by, float *expert) {
    uint32_t choices = a.experts - a.always, chosen = a.used - a.always;
    const float *from = logits;
    if (a.bias || a.groups > 1) {
        const float *x = a.bias_to_logits ? logits : score;
        for (uint32_t e = 0; e < choices; e++) by[e] = a.bias ? x[e] + a.bias[e] : x[e];
        if (a.groups > 1) mask_groups(a, by);
        from = by;
    }
    top_of(from, choices, chosen, expert);
    for (uint32_t i = 0; i < a.always; i++) expert[chosen + i] = (float)(choices + i);
}

/* ---- their weights ---- */

__device__ double score_of(uint32_t kind, double x) {
    if (kind == ROUTE_SIGMOID) return 1 / (1 + exp(-x));
    if (kind == ROUTE_SQRT_SOFTPLUS) return sqrt(x > 20 ? x : log1p(exp(x)));
    return x;
}

/* Top and sum of a softmax: of the n logits, or of those chosen. */
struct soft { double top, sum; };

__device__ struct soft softmax_of(const float *x, uint32_t n, const float *chosen) {
    struct soft s = {-INFINITY, 0};
    for (uint32_t i = 0; i < n; i++) s.top = fmax(s.top, (double)x[chosen ? (uint32_t)chosen[i] : i]);
    for (uint32_t i = 0; i < n; i++) s.sum += exp(x[chosen ? (uint32_t)chosen[i] : i] - s.top);
    return s;
}

__device__ double sparse_weight(const struct cuda_route &a, const float *x, const float *expert,
                                uint32_t i) {
    double sum = 0;
    float top = x[(uint32_t)expert[i]];
    for (uint32_t e = 0; e < a.experts; e++) {
        bool taken = false;
        for (uint32_t k = 0; k < i; k++) taken |= expert[k] == (float)e;
        float size = fabsf(x[e]) > top ? fabsf(x[e]) : top;
        if (!taken && !((top - x[e]) / size > 2 * a.jitter_eps)) sum += exp((double)x[e] - top);
    }
    return 1 / sum;
}

KERNEL_FN(route, struct cuda_route) {
    take_turn();
    uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= a.tokens) return;
    const float *x = a.logits + (size_t)t * a.experts;
    float *score = a.scratch + (size_t)t * 2 * a.experts, *by = score + a.experts;
    float *y = a.y + (size_t)t * 2 * a.used, *expert = y + a.used;
    struct soft soft = {0, 1};
    bool softmax = a.score == ROUTE_SOFTMAX, of_chosen = a.score == ROUTE_SOFTMAX_CHOSEN;
    if (softmax) soft = softmax_of(x, a.experts, NULL);
    for (uint32_t e = 0; e < a.experts; e++)
        score[e] = softmax ? (float)(exp(x[e] - soft.top) / soft.sum)
                           : (float)score_of(a.score, x[e]);
    if (a.chosen)
        for (uint32_t i = 0; i < a.used; i++) expert[i] = a.chosen[(size_t)t * a.used + i];
    else choose(a, x, score, by, expert);
    if (of_chosen) soft = softmax_of(x, a.used, expert);

    double weight[ROUTE_USED_MAX], sum = 0;
    for (uint32_t i = 0; i < a.used; i++) {
        double v = x[(uint32_t)expert[i]];
        weight[i] = a.score == ROUTE_SPARSEMIXER ? sparse_weight(a, x, expert, i)
                    : softmax || of_chosen       ? exp(v - soft.top) / soft.sum
                                                 : score_of(a.score, v);
        sum += weight[i];
    }
    for (uint32_t i = 0; i < a.used; i++) {
        double w = weight[i];
        if (a.normalize) w /= sum + (double)a.normalize_eps;
        w *= (double)a.scale;
        if (a.expert_scale) w *= (double)a.expert_scale[(uint32_t)expert[i]];
        y[i] = (float)w;
    }
}

/* ---- pairs by expert, within one in order of the tokens ---- */

KERNEL_FN(group, struct cuda_group) {
    take_turn();
    uint32_t pairs = a.tokens * a.used;
    for (uint32_t e = threadIdx.x; e < a.experts; e += blockDim.x) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < pairs; i++)
            n += (uint32_t)a.route[(size_t)(i / a.used) * 2 * a.used + a.used + i % a.used] == e;
        a.first[e + 1] = n;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        a.first[0] = 0;
        for (uint32_t e = 0; e < a.experts; e++) a.first[e + 1] += a.first[e];
    }
    __syncthreads();
    for (uint32_t e = threadIdx.x; e < a.experts; e += blockDim.x) {
        uint32_t at = a.first[e];
        for (uint32_t i = 0; i < pairs && at < a.first[e + 1]; i++) {
            if ((uint32_t)a.route[(size_t)(i / a.used) * 2 * a.used + a.used + i % a.used] != e)
                continue;
            a.token[at] = i / a.used;
            a.expert[at] = e;
            a.pair[i] = at++;
        }
    }
}

KERNEL_FN(combine, struct cuda_combine) {
    take_turn();
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    uint64_t t = i / a.cols, c = i % a.cols;
    float sum = 0;
    for (uint32_t k = 0; k < a.used; k++)
        sum = fmaf(a.route[t * 2 * a.used + k],
                   a.x[(uint64_t)a.pair[t * a.used + k] * a.cols + c], sum);
    a.y[i] = sum;
}

KERNEL_FN(route_rest, struct cuda_combine) {
    take_turn();
    uint64_t t = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= a.n) return;
    const float *route = a.route + t * 2 * a.used;
    float sum = 0;
    for (uint32_t k = 0; k < a.used; k++)
        if (route[a.used + k] >= (float)a.first) sum += route[k];
    a.y[t] = sum;
}
