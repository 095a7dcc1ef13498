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

static void norm_rms(const float *x, const float *w, const float *b, float eps, float *y,
                     uint32_t width) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < width; i += VF) {
        vf v = get(x + i, part(width - i));
        sum = vf_fma(v, v, sum);
    }
    norm_write(x, 0, 1 / sqrtf(vf_sum(sum) / (float)width + eps), w, b, y, width);
}

static void norm_layer(const float *x, const float *w, const float *b, float eps, float *y,
                       uint32_t width) {
    vf sum = vf_zero(), squares = vf_zero();
    for (uint32_t i = 0; i < width; i += VF) sum = vf_add(get(x + i, part(width - i)), sum);
    float mean = vf_sum(sum) / (float)width;
    for (uint32_t i = 0; i < width; i += VF) {
        uint32_t m = part(width - i);
        vf v = vf_sub(get(x + i, m), vf_set1(mean));
        v = vf_if_lt(vf_iota(), vf_set1((float)m), v, vf_zero()); /* zeros past the end stay zero */
        squares = vf_fma(v, v, squares);
    }
    norm_write(x, mean, 1 / sqrtf(vf_sum(squares) / (float)width + eps), w, b, y, width);
}
