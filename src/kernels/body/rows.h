/* SPDX-License-Identifier: Apache-2.0
 * rows.h: bodies of the ops that are a norm's kin: one number of a whole row, then each element. */

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

static void round_act(const float *x, float *y, uint32_t n) {
    vf top = vf_set1(1e-5f), half = vf_set1(0x1.8p23f); /* more than this has no fraction */
    for (uint32_t i = 0; i < n; i += VF) top = vf_max(vf_abs(get(x + i, part(n - i))), top);
    vf s = vf_set1(127 / vf_top(top));
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf code = vf_sub(vf_add(vf_mul(get(x + i, m), s), half), half);
        put(y + i, vf_div(code, s), m);
    }
}
