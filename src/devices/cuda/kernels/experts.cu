/* SPDX-License-Identifier: Apache-2.0
 * experts.cu: routers, the grouping of a step's pairs, and their sum. A router is a warp a token;
 * it chooses as kernels/ref/route.c has it, and weighs in double, but for exponentials that nothing is
 * chosen by: those of float are cheaper. Sums over lanes have one order
 * (a butterfly): a token's route does not depend on the step. */
#include "devices/cuda/kernels/common.cuh"

__device__ uint32_t lane_id() { return threadIdx.x % WARP; }

/* ---- the experts of a token ---- */

__device__ bool above(float x, float y) { return x > y || (isnan(x) && !isnan(y)); }

/* Whole numbers in the order of above(), none 0 or the largest. */
__device__ uint32_t key_of(float x) {
    if (isnan(x)) return ~0u - 1;
    uint32_t bits = __float_as_uint(x + 0.0f); /* -0 is 0 */
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

struct choice { uint32_t key, expert; };

/* The largest behind `last`, of equals the first; of lane's i-th, i < n. All lanes get it. */
template <class Key> __device__ struct choice choose_next(uint32_t n, struct choice last, Key key) {
    struct choice best = {0, ~0u};
#pragma unroll
    for (uint32_t i = 0; i < n; i++) {
        uint32_t own = key(i), expert = i * WARP + lane_id();
        bool behind = own < last.key || (own == last.key && expert > last.expert);
        if (behind && own > best.key) best = {own, expert};
    }
    uint32_t top = __reduce_max_sync(~0u, best.key);
    return {top, __reduce_min_sync(~0u, best.key == top ? best.expert : ~0u)};
}

__device__ void top_of(const float *x, uint32_t n, uint32_t used, float *expert) {
    enum { KEPT = 8 /* keys of a lane */ };
    struct choice last = {~0u, ~0u};
    uint32_t kept[KEPT];
#pragma unroll
    for (uint32_t k = 0; k < KEPT; k++) {
        uint32_t i = k * WARP + lane_id();
        kept[k] = i < n ? key_of(x[i]) : 0;
    }
    for (uint32_t i = 0; i < used; i++) {
        if (n <= KEPT * WARP) last = choose_next(KEPT, last, [&](uint32_t k) { return kept[k]; });
        else last = choose_next((n + WARP - 1) / WARP, last, [&](uint32_t k) {
            uint32_t e = k * WARP + lane_id();
            return e < n ? key_of(x[e]) : 0;
        });
        if (lane_id() == 0) expert[i] = (float)last.expert;
    }
}

/* What a group is worth: its largest, or its two largest. */
__device__ float group_value(const struct cuda_route &a, const float *x, uint32_t size) {
    float first = x[0], second = -INFINITY;
    for (uint32_t i = 1; i < size; i++) {
        if (above(x[i], first)) second = first, first = x[i];
        else if (i == 1 || above(x[i], second)) second = x[i];
    }
    return a.group == ROUTE_GROUP_TOP2 ? first + second : first;
}

/* A lane a group, or two. */
__device__ void mask_groups(const struct cuda_route &a, float *by) {
    uint32_t size = a.experts / a.groups;
    float value[ROUTE_GROUPS_MAX / WARP];
#pragma unroll
    for (uint32_t k = 0; k < ROUTE_GROUPS_MAX / WARP; k++) {
        uint32_t g = k * WARP + lane_id();
        value[k] = g < a.groups ? group_value(a, by + (size_t)g * size, size) : 0;
    }
    __syncwarp();
#pragma unroll
    for (uint32_t k = 0; k < ROUTE_GROUPS_MAX / WARP; k++) {
        uint32_t g = k * WARP + lane_id(), before = 0;
        for (uint32_t i = 0; i < a.groups; i++) {
            float low = __shfl_sync(~0u, value[0], i % WARP);
            float other = i < WARP ? low : __shfl_sync(~0u, value[1], i % WARP);
            before += above(other, value[k]) || (!above(value[k], other) && i < g);
        }
        if (g >= a.groups || before < a.groups_used) continue;
        for (uint32_t e = 0; e < size; e++)
            by[(size_t)g * size + e] = a.group_zero ? 0 : -INFINITY;
    }
    __syncwarp();
}

__device__ void choose(const struct cuda_route &a, const float *logits, const float *score,
                       float *by, float *expert) {
    uint32_t choices = a.experts - a.always, chosen = a.used - a.always;
    const float *from = logits;
    if (a.bias || a.groups > 1) {
        const float *x = a.bias_to_logits ? logits : score;
        for (uint32_t e = lane_id(); e < choices; e += WARP)
            by[e] = a.bias ? x[e] + a.bias[e] : x[e];
        __syncwarp();
        if (a.groups > 1) mask_groups(a, by);
        from = by;
    }
    top_of(from, choices, chosen, expert);
    for (uint32_t i = lane_id(); i < a.always; i += WARP) expert[chosen + i] = (float)(choices + i);
}

/* ---- their weights ---- */

__device__ double score_of(uint32_t kind, double x) {
    if (kind == ROUTE_SIGMOID) return 1 / (1 + exp(-x));
    if (kind == ROUTE_SQRT_SOFTPLUS) return sqrt(x > 20 ? x : log1p(exp(x)));
    return x;
}

__device__ double exp_of(double x, bool fine) { return fine ? exp(x) : (double)expf((float)x); }

/* Top and sum of a softmax: of the n logits, or of those chosen. */
struct soft { double top, sum; };

__device__ struct soft softmax_of(const float *x, uint32_t n, const float *chosen, bool fine) {
    float top = -INFINITY;
    struct soft s = {0, 0};
    for (uint32_t i = lane_id(); i < n; i += WARP)
        top = fmaxf(top, x[chosen ? (uint32_t)chosen[i] : i]);
    s.top = warp_max(top);
    for (uint32_t i = lane_id(); i < n; i += WARP)
        s.sum += exp_of(x[chosen ? (uint32_t)chosen[i] : i] - s.top, fine);
    for (int away = WARP / 2; away > 0; away /= 2) s.sum += __shfl_xor_sync(~0u, s.sum, away);
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

/* By a warp; a lane has the weights lane, lane + WARP. `list`: of pairs' experts; NULL: none. */
__device__ void route_token(const struct cuda_route &a, uint32_t t, uint16_t *list) {
    const float *x = a.logits + (size_t)t * a.experts;
    float *score = a.scratch + (size_t)t * 2 * a.experts, *by = score + a.experts;
    float *y = a.y + (size_t)t * 2 * a.used, *expert = y + a.used;
    struct soft soft = {0, 1};
    bool softmax = a.score == ROUTE_SOFTMAX, of_chosen = a.score == ROUTE_SOFTMAX_CHOSEN;
    bool by_score = !a.chosen && !a.bias_to_logits && (a.bias || a.groups > 1);
    if (softmax) soft = softmax_of(x, a.experts, NULL, by_score);
    for (uint32_t e = lane_id(); by_score && e < a.experts; e += WARP)
        score[e] = softmax ? (float)(exp(x[e] - soft.top) / soft.sum)
                           : (float)score_of(a.score, x[e]);
    __syncwarp();
    if (a.chosen)
        for (uint32_t i = lane_id(); i < a.used; i += WARP)
            expert[i] = fminf(fmaxf(a.chosen[(size_t)t * a.used + i], 0), a.experts - 1);
    else choose(a, x, score, by, expert);
    __syncwarp();
    if (of_chosen) soft = softmax_of(x, a.used, expert, by_score);

    enum { EACH = ROUTE_USED_MAX / WARP };
    double weight[EACH] = {}, sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        uint32_t i = k * WARP + lane_id();
        if (i >= a.used) continue;
        double v = x[(uint32_t)expert[i]];
        weight[k] = a.score == ROUTE_SPARSEMIXER ? sparse_weight(a, x, expert, i)
                    : softmax || of_chosen       ? exp_of(v - soft.top, by_score) / soft.sum
                                                 : score_of(a.score, v);
    }
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) /* in order of the slots */
        for (uint32_t i = 0; k * WARP + i < a.used && i < WARP; i++)
            sum += __shfl_sync(~0u, weight[k], i);
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        uint32_t i = k * WARP + lane_id();
        if (i >= a.used) continue;
        double w = weight[k];
        if (a.normalize) w /= sum + (double)a.normalize_eps;
        w *= (double)a.scale;
        if (a.expert_scale) w *= (double)a.expert_scale[(uint32_t)expert[i]];
        y[i] = (float)w;
        if (list) list[t * a.used + i] = (uint16_t)expert[i];
    }
}

KERNEL_FN(route, struct cuda_route) {
    take_turn();
    uint32_t t = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (t < a.tokens) route_token(a, t, NULL);
}

/* ---- pairs by expert, within one in order of the tokens ---- */

__device__ uint32_t expert_of(const struct cuda_group &a, uint32_t pair) {
    return (uint32_t)a.route[(size_t)(pair / a.used) * 2 * a.used + a.used + pair % a.used];
}

__device__ uint32_t scan(uint32_t v) { /* with the lanes before */
    for (uint32_t away = 1; away < WARP; away *= 2) {
        uint32_t other = __shfl_up_sync(~0u, v, away);
        if (lane_id() >= away) v += other;
    }
    return v;
}

/* What a block has of it in shared memory: begin [experts], where expert e's pairs begin, or how many
 * there are; list [pairs], if there are no more than GROUP_LISTED; count [warps][experts]. */
struct grouping {
    uint32_t *begin, *count;
    uint16_t *list; /* NULL: none */
};

__device__ struct grouping grouping_of(const struct cuda_group &a) {
    extern __shared__ uint32_t shared[];
    uint32_t pairs = a.tokens * a.used;
    struct grouping g = {shared, shared + a.experts, NULL};
    if (pairs > GROUP_LISTED) return g;
    g.list = (uint16_t *)(g.count + a.warps * a.experts);
    return g;
}

/* Each expert's beginning, and its tiles, by one warp. */
__device__ void begin_experts(const struct cuda_group &a, uint32_t *begin) {
    uint32_t pairs = 0, tiles = 0;
    for (uint32_t e = lane_id(); e - lane_id() < a.experts; e += WARP) {
        uint32_t n = e < a.experts ? begin[e] : 0, high = (n + a.height - 1) / a.height;
        uint32_t end = pairs + scan(n), tile = tiles + scan(high) - high;
        if (e < a.experts) begin[e] = end - n;
        for (uint32_t i = 0; i < high; i++)
            a.tile[tile + i] = {e, end - n + i * a.height, min(a.height, n - i * a.height), 0};
        pairs = __shfl_sync(~0u, end, WARP - 1);
        tiles = __shfl_sync(~0u, tile + high, WARP - 1);
    }
    if (lane_id() == 0) *a.tiles = tiles;
}

/* What a warp makes of its run of pairs: lanes of one expert stand in order of their pairs. */
template <class Each>
__device__ void each_pair(const struct cuda_group &a, const struct grouping &g, bool listed,
                          Each each) {
    uint32_t pairs = a.tokens * a.used, warp = threadIdx.x / WARP;
    uint32_t run = (pairs + a.warps * WARP - 1) / (a.warps * WARP) * WARP;
    uint32_t end = min(pairs, (warp + 1) * run);
    if (warp >= a.warps) return;
    for (uint32_t base = warp * run; base < end; base += WARP) {
        uint32_t i = base + lane_id(), e = ~0u;
        if (i < end) e = listed ? g.list[i] : expert_of(a, i);
        uint32_t same = __match_any_sync(~0u, e), before = same & ((1u << lane_id()) - 1);
        uint32_t *own = g.count + (size_t)warp * a.experts + e;
        uint32_t at = i < end ? *own : 0;
        if (i < end) each(i, e, at + __popc(before));
        __syncwarp();
        if (i < end && before == 0) *own = at + __popc(same);
        __syncwarp();
    }
}

/* By a block; `listed`: the list is there. */
__device__ void group_pairs(const struct cuda_group &a, const struct grouping &g, bool listed) {
    for (uint32_t i = threadIdx.x; i < a.warps * a.experts; i += blockDim.x) g.count[i] = 0;
    __syncthreads();
    each_pair(a, g, listed, [&](uint32_t i, uint32_t e, uint32_t) {
        if (g.list && !listed) g.list[i] = (uint16_t)e;
    });
    __syncthreads();
    for (uint32_t e = threadIdx.x; e < a.experts; e += blockDim.x) {
        uint32_t sum = 0;
        for (uint32_t w = 0; w < a.warps; w++) {
            uint32_t n = g.count[w * a.experts + e];
            g.count[w * a.experts + e] = sum;
            sum += n;
        }
        g.begin[e] = sum;
    }
    __syncthreads();
    if (threadIdx.x < WARP) begin_experts(a, g.begin);
    __syncthreads();
    each_pair(a, g, g.list != NULL, [&](uint32_t i, uint32_t e, uint32_t behind) {
        uint32_t at = g.begin[e] + behind;
        a.token[at] = i / a.used;
        a.expert[at] = e;
        a.pair[i] = at;
    });
}

KERNEL_FN(group, struct cuda_group) {
    take_turn();
    group_pairs(a, grouping_of(a), false);
}

/* Both by one block, of few tokens. */
extern "C" __global__ void __launch_bounds__(1024)
    route_group(const __grid_constant__ struct cuda_route_group a) {
    const struct grouping g = grouping_of(a.group);
    take_turn();
    for (uint32_t t = threadIdx.x / WARP; t < a.route.tokens; t += blockDim.x / WARP)
        route_token(a.route, t, g.list);
    __syncthreads();
    group_pairs(a.group, g, true);
}

/* ---- what experts give ---- */

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
