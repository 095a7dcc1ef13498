/* SPDX-License-Identifier: Apache-2.0
 * simple.h: bodies of the ops that work element by element: add, scale, softcap, glu. */
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

static void scale(const float *x, float s, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(get(x + i, m), vf_set1(s)), m);
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

VEC_INLINE vf silu(vf x) { return vf_div(x, vf_add(vf_set1(1), math_exp(vf_neg(x)))); }

/* x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3) */
VEC_INLINE vf gelu_tanh(vf x) {
    vf f = vf_fma(vf_mul(x, x), vf_set1(-0.0713548162726f), vf_set1(-1.59576912161f));
    return vf_div(x, vf_add(vf_set1(1), math_exp(vf_mul(x, f))));
}

VEC_INLINE vf gelu_erf(vf x) {
    vf e = math_erf(vf_mul(x, vf_set1(0.70710678f)));
    return vf_mul(vf_mul(x, vf_set1(0.5f)), vf_add(vf_set1(1), e));
}

static void glu_silu(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(silu(get(gate + i, m)), get(up + i, m)), m);
    }
}
static void glu_gelu_tanh(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(gelu_tanh(get(gate + i, m)), get(up + i, m)), m);
    }
}
static void glu_gelu_erf(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        put(y + i, vf_mul(gelu_erf(get(gate + i, m)), get(up + i, m)), m);
    }
}
static void glu_relu(const float *gate, const float *up, float *y, size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf x = vf_max(vf_zero(), get(gate + i, m));
        put(y + i, vf_mul(x, get(up + i, m)), m);
    }
}
