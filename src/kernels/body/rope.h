/* SPDX-License-Identifier: Apache-2.0
 * rope.h: body of rope: (a, b) to (a cos - b sin, b cos + a sin), the first product rounded, the
 * second fused. */

VEC_INLINE void rotate(vf *a, vf *b, vf c, vf s) {
    vf x = *a;
    *a = vf_fnma(*b, s, vf_mul(x, c));
    *b = vf_fma(x, s, vf_mul(*b, c));
}

/* Pairs (i, i + half). */
static void rope_halves(const float *x, const float *table, float *y, uint32_t half) {
    for (uint32_t i = 0; i < half; i += VF) {
        uint32_t m = part(half - i);
        vf a = get(x + i, m), b = get(x + half + i, m);
        rotate(&a, &b, get(table + i, m), get(table + half + i, m));
        put(y + i, a, m);
        put(y + half + i, b, m);
    }
}

/* Pairs (2i, 2i + 1). */
static void rope_pairs(const float *x, const float *table, float *y, uint32_t half) {
    for (uint32_t i = 0; i < half; i += VF) {
        uint32_t m = part(half - i), low = part(2 * m), high = 2 * m - low;
        vf first = get(x + 2 * i, low), second = get(x + 2 * i + low, high), a, b;
        vf_unzip(first, second, &a, &b);
        rotate(&a, &b, get(table + i, m), get(table + half + i, m));
        vf_zip(a, b, &first, &second);
        put(y + 2 * i, first, low);
        put(y + 2 * i + low, second, high);
    }
}

static void rope(const float *x, const float *table, float *y, uint32_t heads, uint32_t head_dim,
                 uint32_t half, bool interleaved) {
    for (uint32_t h = 0; h < heads; h++, x += head_dim, y += head_dim) {
        (interleaved ? rope_pairs : rope_halves)(x, table, y, half);
        if (x != y && head_dim > 2 * half)
            memcpy(y + 2 * half, x + 2 * half, (head_dim - 2 * half) * sizeof *y);
    }
}
