/* SPDX-License-Identifier: Apache-2.0
 * rows.h: bodies of the ops that are a norm's kin: one number of a whole row, then each element;
 * and of a row that is a matrix. */

static void sparsify(const float *x, float by, float *y, uint32_t n) {
    float mean = norm_mean(x, n), deviation = sqrtf(norm_variance(x, mean, n));
    vf cut = vf_set1(mean + deviation * by);
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_max(vf_sub(get(x + i, m), cut), vf_zero()), m);
    }
}

static void match_rms(const float *a, const float *b, float floor, float *y, uint32_t n) {
    float own = norm_squares(a, n) / (float)n, other = norm_squares(b, n) / (float)n;
    scale(a, sqrtf(other) / sqrtf(own < floor ? floor : own), y, n);
}

static void round_act(const float *x, float *codes, float *step, uint32_t n) {
    vf top = vf_set1(1e-5f), half = vf_set1(0x1.8p23f); /* more than this has no fraction */
    for (uint32_t i = 0; i < n; i += VF) top = vf_max(vf_abs(get(x + i, part(n - i))), top);
    float s1 = 127 / vf_top(top);
    vf s = vf_set1(s1);
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(codes + i, vf_sub(vf_add(vf_mul(get(x + i, m), s), half), half), m);
    }
    *step = 1 / s1;
}

/* Of each row of y [n][n], if `rows`, else of each column: divided by its sum + eps. */
static void sinkhorn_divide(float *y, uint32_t n, bool rows, float eps) {
    uint32_t line = rows ? n : 1, step = rows ? 1 : n;
    for (uint32_t i = 0; i < n; i++) {
        float *at = y + i * line, sum = 0;
        for (uint32_t k = 0; k < n; k++) sum += at[k * step];
        for (uint32_t k = 0; k < n; k++) at[k * step] /= sum + eps;
    }
}

static void sinkhorn(const float *x, uint32_t n, uint32_t rounds, float eps, float *y) {
    for (uint32_t r = 0; r < n; r++) {
        const float *row = x + r * n;
        float top = row[0];
        for (uint32_t i = 1; i < n; i++) top = row[i] > top ? row[i] : top;
        for (uint32_t i = 0; i < n; i += VF) {
            uint32_t m = part(n - i);
            put(y + r * n + i, math_exp(vf_sub(get(row + i, m), vf_set1(top))), m);
        }
    }
    sinkhorn_divide(y, n, true, 0);
    for (uint32_t i = 0; i < n * n; i++) y[i] += eps;
    sinkhorn_divide(y, n, false, eps);
    for (uint32_t i = 1; i < rounds; i++) {
        sinkhorn_divide(y, n, true, eps);
        sinkhorn_divide(y, n, false, eps);
    }
}
