/* SPDX-License-Identifier: Apache-2.0
 * experts.h: body of route and combine. Which experts are chosen is plain C for every table. */
#include "kernels/ref/ref.h"

/* e^(x - top) of `n` elements, zeros after the last. */
VEC_INLINE vf route_exp(const float *x, float top, uint32_t n) {
    vf e = math_exp(vf_sub(get(x, n), vf_set1(top)));
    return n == VF ? e : vf_if_lt(vf_iota(), vf_set1((float)n), e, vf_zero());
}

VEC_INLINE vf route_sum(const float *x, float top, uint32_t n) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < n; i += VF) sum = vf_add(sum, route_exp(x + i, top, part(n - i)));
    return vf_set1(vf_sum(sum));
}

VEC_INLINE void route(const float *x, uint32_t experts, uint32_t used, float *out, bool chosen) {
    float logit[ROUTE_USED_MAX] = {0};
    route_top(x, experts, used, out + used);
    for (uint32_t i = 0; i < used; i++) logit[i] = x[(uint32_t)out[used + i]];
    vf sum = chosen ? route_sum(logit, logit[0], used) : route_sum(x, logit[0], experts);
    for (uint32_t i = 0; i < used; i += VF) {
        uint32_t m = part(used - i);
        put(out + i, vf_div(route_exp(logit + i, logit[0], m), sum), m);
    }
}

static void route_softmax(const float *x, uint32_t experts, uint32_t used, float *out) {
    route(x, experts, used, out, false);
}
static void route_softmax_chosen(const float *x, uint32_t experts, uint32_t used, float *out) {
    route(x, experts, used, out, true);
}

static void combine(const float *x, const uint32_t *row, const float *weight, uint32_t used,
                    uint32_t cols, float *y) {
    for (uint32_t c = 0; c < cols; c += VF) {
        uint32_t m = part(cols - c);
        vf sum = vf_mul(vf_set1(weight[0]), get(x + (size_t)row[0] * cols + c, m));
        for (uint32_t i = 1; i < used; i++)
            sum = vf_fma(vf_set1(weight[i]), get(x + (size_t)row[i] * cols + c, m), sum);
        put(y + c, sum, m);
    }
}
