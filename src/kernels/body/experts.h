/* SPDX-License-Identifier: Apache-2.0
 * experts.h: body of route, combine and mix. Which experts are chosen is plain C for every table
 * (ref/route.c, where the formulas are, too). */
/* Lanes l < n of v, zeros after them. */
VEC_INLINE vf route_first(vf v, uint32_t n) {
    return n == VF ? v : vf_if_lt(vf_iota(), vf_set1((float)n), v, vf_zero());
}

static void route_softmax(const float *x, uint32_t n, float *y) {
    float top = x[0];
    for (uint32_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    vf sum = vf_zero();
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf e = route_first(math_exp(vf_sub(get(x + i, m), vf_set1(top))), m);
        sum = vf_add(sum, e);
        put(y + i, e, m);
    }
    sum = vf_set1(vf_sum(sum));
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_div(get(y + i, m), sum), m);
    }
}

static void route_scores(const struct route_job *job, const float *x, float *y) {
    uint32_t n = job->experts;
    if (job->score == ROUTE_SOFTMAX) {
        route_softmax(x, n, y);
        return;
    }
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf v = get(x + i, m);
        if (job->score == ROUTE_SIGMOID) v = sigmoid(v);
        if (job->score == ROUTE_SQRT_SOFTPLUS) v = vf_sqrt(math_softplus(v));
        put(y + i, v, m);
    }
}

/* The weight of an expert of logit `top` among those of x; the taken ones are -infinity. */
static float route_sparse(const float *x, uint32_t n, float top, float limit) {
    vf sum = vf_zero(), t = vf_set1(top);
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf v = get(x + i, m), far = vf_div(vf_sub(t, v), vf_max(vf_abs(v), t));
        vf e = vf_if_lt(vf_set1(limit), far, vf_zero(), math_exp(vf_sub(v, t)));
        sum = vf_add(sum, route_first(e, m));
    }
    return 1 / vf_sum(sum);
}

static void route_finish(const struct route_job *job, float *weight, const float *expert) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < job->used; i += VF)
        sum = vf_add(sum, get(weight + i, part(job->used - i)));
    float divisor = job->normalize ? vf_sum(sum) + job->normalize_eps : 1;
    for (uint32_t i = 0; i < job->used; i++) {
        weight[i] = weight[i] / divisor * job->scale;
        if (job->expert_scale) weight[i] *= job->expert_scale[(uint32_t)expert[i]];
    }
}

static void route(const struct route_job *job, const float *logits, float *out) {
    float score[ROUTE_EXPERTS_MAX], chosen[ROUTE_USED_MAX], *expert = out + job->used;
    route_scores(job, logits, score);
    route_choose(job, logits, score, expert);
    for (uint32_t i = 0; i < job->used; i++) {
        float *s = &score[(uint32_t)expert[i]];
        chosen[i] = *s;
        if (job->score != ROUTE_SPARSEMIXER) continue;
        chosen[i] = route_sparse(score, job->experts, *s, 2 * job->jitter_eps);
        *s = -INFINITY;
    }
    if (job->score == ROUTE_SOFTMAX_CHOSEN) route_softmax(chosen, job->used, out);
    else memcpy(out, chosen, job->used * sizeof *out);
    route_finish(job, out, expert);
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

static void mix(const float *x, const float *w, uint32_t from, uint32_t to, uint32_t width,
                float *y) {
    for (uint32_t k = 0; k < to; k++)
        for (uint32_t c = 0; c < width; c += VF) {
            uint32_t m = part(width - c);
            vf sum = vf_mul(vf_set1(w[k]), get(x + c, m));
            for (uint32_t j = 1; j < from; j++)
                sum = vf_fma(vf_set1(w[j * to + k]), get(x + (size_t)j * width + c, m), sum);
            put(y + (size_t)k * width + c, sum, m);
        }
}
