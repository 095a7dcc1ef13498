/* SPDX-License-Identifier: Apache-2.0
 * norm.h: body of the norms: sums in 16 lanes, then one scale for the run. */

VEC_INLINE void norm_write(const float *x, float mean, float factor, const float *w, const float *b,
                           float *y, uint32_t width) {
    for (uint32_t i = 0; i < width; i += VF) {
        uint32_t m = part(width - i);
        vf v = vf_mul(vf_sub(get(x + i, m), vf_set1(mean)), vf_set1(factor));
        if (w) v = vf_mul(v, get(w + i, m));
        if (b) v = vf_add(v, get(b + i, m));
        put(y + i, v, m);
    }
}

VEC_INLINE float norm_squares(const float *x, uint32_t width) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < width; i += VF) {
        vf v = get(x + i, part(width - i));
        sum = vf_fma(v, v, sum);
    }
    return vf_sum(sum);
}

static float dot(const float *a, const float *b, uint32_t n) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        sum = vf_fma(get(a + i, m), get(b + i, m), sum);
    }
    return vf_sum(sum);
}

VEC_INLINE float norm_mean(const float *x, uint32_t width) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < width; i += VF) sum = vf_add(get(x + i, part(width - i)), sum);
    return vf_sum(sum) / (float)width;
}

VEC_INLINE float norm_variance(const float *x, float mean, uint32_t width) {
    vf squares = vf_zero();
    for (uint32_t i = 0; i < width; i += VF) {
        uint32_t m = part(width - i);
        vf v = vf_sub(get(x + i, m), vf_set1(mean));
        v = vf_if_lt(vf_iota(), vf_set1((float)m), v, vf_zero()); /* zeros past the end stay zero */
        squares = vf_fma(v, v, squares);
    }
    return vf_sum(squares) / (float)width;
}

static void norm_rms(const float *x, const float *w, const float *b, float eps, float *y,
                     uint32_t width) {
    norm_write(x, 0, 1 / sqrtf(norm_squares(x, width) / (float)width + eps), w, b, y, width);
}

static void norm_l2(const float *x, const float *w, const float *b, float eps, float *y,
                    uint32_t width) {
    float length = sqrtf(norm_squares(x, width));
    norm_write(x, 0, 1 / (length < eps ? eps : length), w, b, y, width);
}

static void norm_l2_sum(const float *x, const float *w, const float *b, float eps, float *y,
                        uint32_t width) {
    norm_write(x, 0, 1 / sqrtf(norm_squares(x, width) + eps), w, b, y, width);
}

static void norm_layer(const float *x, const float *w, const float *b, float eps, float *y,
                       uint32_t width) {
    float mean = norm_mean(x, width);
    norm_write(x, mean, 1 / sqrtf(norm_variance(x, mean, width) + eps), w, b, y, width);
}
