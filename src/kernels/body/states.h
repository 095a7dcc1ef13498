/* SPDX-License-Identifier: Apache-2.0
 *
 * states.h: body of the recurrent ops: compress, conv1d, delta, mlstm, rglru, scan, wkv4
 * (arithmetic: kernels.h). Lanes are columns, so nothing is summed across lanes but mlstm's
 * normalizer. */

/* Jobs are copied first: a store cannot change the copy, so its members stay in registers. */

/* ---- compress ---- */

/* An empty mean has no weights. */
struct mean { vf sum, weights, top; };

VEC_INLINE struct mean mean_empty(void) {
    return (struct mean){vf_zero(), vf_zero(), vf_set1(-1e38f)};
}

VEC_INLINE struct mean mean_load(const float *p, uint32_t cols, uint32_t m) {
    struct mean a = {get(p, m), get(p + cols, m), get(p + 2 * (size_t)cols, m)};
    a.top = vf_if_lt(vf_zero(), a.weights, a.top, vf_set1(-1e38f));
    return a;
}

VEC_INLINE void mean_store(float *p, uint32_t cols, struct mean a, uint32_t m) {
    put(p, a.sum, m);
    put(p + cols, a.weights, m);
    put(p + 2 * (size_t)cols, a.top, m);
}

VEC_INLINE struct mean mean_with(struct mean a, vf x, vf v) {
    vf top = vf_max(a.top, x), e = math_exp(vf_sub(a.top, top)), f = math_exp(vf_sub(x, top));
    return (struct mean){vf_fma(e, a.sum, vf_mul(f, v)), vf_fma(e, a.weights, f), top};
}

static void compress(const struct compress_job *job, uint32_t col0, uint32_t col1) {
    const struct compress_job j = *job;
    uint32_t all = j.overlaps ? 2 * j.cols : j.cols;
    for (uint32_t c = col0; c < col1; c += VF) {
        uint32_t m = part(col1 - c), place = j.at, own = all - j.cols + c;
        float *next = j.state + 3 * (size_t)j.cols;
        struct mean mean = mean_load(j.state + c, j.cols, m), first = mean_empty();
        if (j.overlaps) first = mean_load(next + c, j.cols, m);
        for (uint32_t t = 0; t < j.tokens; t++) {
            const float *kv = j.kv + (size_t)t * all, *gate = j.gate + (size_t)t * all;
            const float *bias = j.bias + (size_t)place * all;
            if (place == 0) {
                mean = j.overlaps ? first : mean_empty();
                first = mean_empty();
            }
            mean = mean_with(mean, vf_add(get(gate + own, m), get(bias + own, m)),
                             get(kv + own, m));
            if (j.overlaps)
                first = mean_with(first, vf_add(get(gate + c, m), get(bias + c, m)),
                                  get(kv + c, m));
            put(j.y + (size_t)t * j.cols + c, vf_div(mean.sum, mean.weights), m);
            if (++place == j.every) place = 0;
        }
        mean_store(j.state + c, j.cols, mean, m);
        if (j.overlaps) mean_store(next + c, j.cols, first, m);
    }
}

/* ---- conv1d ---- */

/* acc += taps [n][cols] times every step-th of rows of cols. */
VEC_INLINE vf conv1d_taps(vf acc, const float *w, const float *row, uint32_t n,
                          const struct conv1d_job *j, uint32_t m) {
    for (uint32_t i = 0; i < n; i++, w += j->cols, row += (size_t)j->step * j->cols)
        acc = vf_fma(get(w, m), get(row, m), acc);
    return acc;
}

/* The newest inputs after the job's tokens: of the state before it and x. */
VEC_INLINE void conv1d_keep(const struct conv1d_job *j, uint32_t c, uint32_t m) {
    uint32_t past = (j->kernel - 1) * j->step;
    for (uint32_t i = 0; i < past; i++) {
        uint32_t from = i + j->tokens; /* in the state followed by x */
        const float *row = from < past ? j->state + (size_t)from * j->cols
                                       : j->x + (size_t)(from - past) * j->cols;
        put(j->state + (size_t)i * j->cols + c, get(row + c, m), m);
    }
}

static void conv1d(const struct conv1d_job *job, uint32_t col0, uint32_t col1) {
    const struct conv1d_job j = *job;
    uint32_t past = (j.kernel - 1) * j.step;
    for (uint32_t t = 0; t < j.tokens; t++) {
        uint32_t kept = past > t ? (past - t + j.step - 1) / j.step : 0; /* taps on the state */
        const float *x = j.x + (size_t)(t + kept * j.step - past) * j.cols;
        const float *w = j.w + (size_t)kept * j.cols;
        for (uint32_t c = col0; c < col1; c += VF) {
            uint32_t m = part(col1 - c);
            vf acc = j.bias ? get(j.bias + c, m) : vf_zero();
            if (kept)
                acc = conv1d_taps(acc, j.w + c, j.state + (size_t)t * j.cols + c, kept, &j, m);
            acc = conv1d_taps(acc, w + c, x + c, j.kernel - kept, &j, m);
            put(j.y + (size_t)t * j.cols + c, acc, m);
        }
    }
    for (uint32_t c = col0; c < col1; c += VF) conv1d_keep(&j, c, part(col1 - c));
}

/* ---- delta ---- */

/* Vectors of columns that are worked on together, for which the pass over k is made once. */
enum { DELTA_WIDE = 4 };

/* One token on `wide` vectors of columns from c on; m: columns of the last (and only) vector. */
INLINE void delta_token(const struct delta_job *j, uint32_t t, uint32_t c, int wide, uint32_t m) {
    const float *q = j->q + t * j->k_stride, *k = j->k + t * j->k_stride;
    const float *decay = j->decay + t * j->decay_stride, *v = j->v + t * j->v_stride + c;
    vf beta = vf_set1(j->beta ? j->beta[t * j->beta_stride] : 1);
    vf change[DELTA_WIDE], y[DELTA_WIDE];
    UNROLL for (int w = 0; w < wide; w++) y[w] = vf_zero();
    if (j->delta)
        for (uint32_t i = 0; i < j->k_dim; i++) {
            const float *s = j->state + (size_t)i * j->v_dim + c;
            vf a = vf_set1(decay[j->decay_each ? i : 0]), ki = vf_set1(k[i]);
            UNROLL for (int w = 0; w < wide; w++)
                y[w] = vf_fma(ki, vf_mul(a, get(s + w * VF, m)), y[w]);
        }
    UNROLL for (int w = 0; w < wide; w++) {
        vf value = get(v + w * VF, m);
        change[w] = vf_mul(beta, j->delta ? vf_sub(value, y[w]) : value);
        y[w] = vf_zero();
    }
    for (uint32_t i = 0; i < j->k_dim; i++) {
        float *s = j->state + (size_t)i * j->v_dim + c;
        vf a = vf_set1(decay[j->decay_each ? i : 0]), ki = vf_set1(k[i]), qi = vf_set1(q[i]);
        UNROLL for (int w = 0; w < wide; w++) {
            vf now = vf_fma(ki, change[w], vf_mul(a, get(s + w * VF, m)));
            put(s + w * VF, now, m);
            y[w] = vf_fma(qi, now, y[w]);
        }
    }
    UNROLL for (int w = 0; w < wide; w++) {
        y[w] = vf_mul(y[w], vf_set1(j->scale));
        if (j->skip) y[w] = vf_fma(vf_set1(*j->skip), get(v + w * VF, m), y[w]);
        put(j->y + t * j->v_stride + c + w * VF, y[w], m);
    }
}

static void delta(const struct delta_job *job) {
    const struct delta_job j = *job;
    uint32_t c = 0;
    for (; c + DELTA_WIDE * VF <= j.v_dim; c += DELTA_WIDE * VF)
        for (uint32_t t = 0; t < j.tokens; t++) delta_token(&j, t, c, DELTA_WIDE, VF);
    for (; c < j.v_dim; c += VF)
        for (uint32_t t = 0; t < j.tokens; t++) delta_token(&j, t, c, 1, part(j.v_dim - c));
}

/* ---- mlstm ---- */

VEC_INLINE float exp_one(float x) {
    float e[VF];
    vf_store(e, math_exp(vf_set1(x)));
    return e[0];
}

/* One token of n; returns n . q. */
VEC_INLINE float mlstm_normalizer(float *n, const float *q, const float *k, float f, float e,
                                  uint32_t k_dim) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < k_dim; i += VF) {
        uint32_t m = part(k_dim - i);
        vf now = vf_mul(vf_set1(f), get(n + i, m));
        now = vf_fma(vf_set1(e), get(k + i, m), now);
        put(n + i, now, m);
        sum = vf_fma(now, get(q + i, m), sum);
    }
    return vf_sum(sum);
}

static void mlstm(const struct mlstm_job *j) {
    float *n = j->state + (size_t)j->k_dim * j->v_dim, *top = n + j->k_dim;
    for (uint32_t t = 0; t < j->tokens; t++) {
        const float *q = j->q + t * j->k_stride, *k = j->k + t * j->k_stride;
        float *y = j->y + t * j->v_stride;
        float old = j->log_decay[t * j->gate_stride] + *top, gate = j->gate[t * j->gate_stride];
        *top = old > gate ? old : gate;
        float f = exp_one(old - *top), e = exp_one(gate - *top);
        delta(&(struct delta_job){.q = q, .k = k, .v = j->v + t * j->v_stride, .decay = &f,
                                  .beta = &e, .y = y, .state = j->state, .k_dim = j->k_dim,
                                  .v_dim = j->v_dim, .tokens = 1, .scale = j->scale});
        float r = fabsf(j->scale * mlstm_normalizer(n, q, k, f, e, j->k_dim));
        float least = exp_one(-*top);
        vf below = vf_set1((r > least ? r : least) + j->eps);
        for (uint32_t c = 0; c < j->v_dim; c += VF) {
            uint32_t m = part(j->v_dim - c);
            put(y + c, vf_div(get(y + c, m), below), m);
        }
    }
}

/* ---- rglru ---- */

/* 1 - exp(t) for t <= 0; a decay near 1 leaves nothing of it but what a series has. */
VEC_INLINE vf one_less_exp(vf t) {
    vf sum = vf_set1(1);
    for (int n = 9; n > 1; n--) sum = vf_fma(vf_mul(t, vf_set1(1 / (float)n)), sum, vf_set1(1));
    vf far = vf_sub(vf_set1(1), math_exp(t));
    return vf_if_lt(t, vf_set1(-0.5f), far, vf_neg(vf_mul(t, sum)));
}

static void rglru(const struct rglru_job *job, uint32_t col0, uint32_t col1) {
    const struct rglru_job j = *job;
    for (uint32_t c = col0; c < col1; c += VF) {
        uint32_t m = part(col1 - c);
        vf h = get(j.state + c, m);
        for (uint32_t t = 0; t < j.tokens; t++) {
            size_t at = (size_t)t * j.cols + c;
            vf log_decay = get(j.log_decay + at, m), x = get(j.x + at, m);
            vf a = math_exp(log_decay), s = vf_sqrt(one_less_exp(vf_add(log_decay, log_decay)));
            h = j.starts && t == 0 ? x : vf_fma(a, h, vf_mul(s, x));
            put(j.y + at, h, m);
        }
        put(j.state + c, h, m);
    }
}

/* ---- scan ---- */

static void scan(const struct scan_job *job, uint32_t col0, uint32_t col1) {
    const struct scan_job j = *job;
    for (uint32_t t = 0; t < j.tokens; t++) {
        const float *in = j.b + t * j.bc_stride, *out = j.c + t * j.bc_stride;
        for (uint32_t c = col0; c < col1; c += VF) {
            uint32_t m = part(col1 - c);
            size_t at = (size_t)t * j.cols + c, row = c;
            vf x = get(j.x + at, m), dt = get(j.dt + at, m), drive = vf_mul(dt, x);
            vf y = vf_zero();
            for (uint32_t i = 0; i < j.n; i++, row += j.cols) {
                vf e = math_exp(vf_mul(dt, get(j.a + row, m)));
                vf h = vf_mul(e, get(j.state + row, m));
                h = vf_fma(drive, vf_set1(in[i]), h);
                put(j.state + row, h, m);
                y = vf_fma(vf_set1(out[i]), h, y);
            }
            if (j.d) y = vf_fma(get(j.d + c, m), x, y);
            put(j.y + at, y, m);
        }
    }
}

/* ---- wkv4 ---- */

static void wkv4(const struct wkv4_job *j, uint32_t col0, uint32_t col1) {
    for (uint32_t c = col0; c < col1; c += VF) {
        uint32_t m = part(col1 - c);
        float *state = j->state + c;
        vf sum = get(state, m), weights = get(state + j->cols, m);
        vf top = get(state + 2 * (size_t)j->cols, m);
        vf decay = get(j->decay + c, m), first = get(j->first + c, m);
        top = vf_if_lt(vf_zero(), weights, top, vf_set1(-1e38f));
        for (uint32_t t = 0; t < j->tokens; t++) {
            size_t at = (size_t)t * j->cols + c;
            vf k = get(j->k + at, m), v = get(j->v + at, m), own = vf_add(first, k);
            vf most = vf_max(top, own), e = math_exp(vf_sub(top, most));
            vf f = math_exp(vf_sub(own, most));
            put(j->y + at, vf_div(vf_fma(e, sum, vf_mul(f, v)), vf_fma(e, weights, f)), m);
            top = vf_add(top, decay);
            most = vf_max(top, k);
            e = math_exp(vf_sub(top, most));
            f = math_exp(vf_sub(k, most));
            sum = vf_fma(e, sum, vf_mul(f, v));
            weights = vf_fma(e, weights, f);
            top = most;
        }
        put(state, sum, m);
        put(state + j->cols, weights, m);
        put(state + 2 * (size_t)j->cols, top, m);
    }
}
