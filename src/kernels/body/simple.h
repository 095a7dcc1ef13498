/* SPDX-License-Identifier: Apache-2.0
 * simple.h: bodies of the ops that work element by element, but activations. */
#include "kernels/body/math.h"

/* The last, shorter vector of a run is continued with zeros. */
VEC_INLINE uint32_t part(size_t left) { return left < VF ? (uint32_t)left : VF; }
VEC_INLINE vf get(const float *p, uint32_t n) { return n == VF ? vf_load(p) : vf_load_n(p, n); }
VEC_INLINE void put(float *p, vf v, uint32_t n) {
    if (n == VF) vf_store(p, v);
    else vf_store_n(p, v, n);
}

static void add(const float *a, const float *b, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_add(get(a + i, m), get(b + i, m)), m);
    }
}


static void clamp(const float *x, float low, float high, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf v = vf_max(vf_set1(low), get(x + i, m));
        put(y + i, vf_min(vf_set1(high), v), m);
    }
}

static void scale(const float *x, float s, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(get(x + i, m), vf_set1(s)), m);
    }
}

static void mul(const float *a, const float *b, float *y, size_t n, size_t run) {
    for (size_t i = 0; run > 1 && i < n; i += run) scale(a + i, b[i / run], y + i, run);
    for (size_t i = 0; run == 1 && i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(get(a + i, m), get(b + i, m)), m);
    }
}

static void affine(const float *x, const float *w, const float *b, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf v = get(x + i, m);
        if (w) v = vf_mul(v, get(w + i, m));
        if (b) v = vf_add(v, get(b + i, m));
        put(y + i, v, m);
    }
}

VEC_INLINE vf cap_vector(vf x, float cap) {
    return vf_mul(math_tanh(vf_div(x, vf_set1(cap))), vf_set1(cap));
}

static void softcap(const float *x, float cap, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, cap_vector(get(x + i, m), cap), m);
    }
}
