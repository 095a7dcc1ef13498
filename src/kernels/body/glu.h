/* SPDX-License-Identifier: Apache-2.0
 * glu.h: bodies of the activations, alone (act_<name>) and as a gate (glu_<name>). */

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

/* x / (1 + exp(-alpha x)) */
VEC_INLINE vf swish(vf x, vf alpha) {
    return vf_div(x, vf_add(vf_set1(1), math_exp(vf_neg(vf_mul(alpha, x)))));
}

VEC_INLINE vf gelu_quick(vf x) { return swish(x, vf_set1(1.702f)); }
VEC_INLINE vf relu(vf x) { return vf_max(vf_zero(), x); }
VEC_INLINE vf relu2(vf x) { return vf_mul(relu(x), relu(x)); }
VEC_INLINE vf sigmoid(vf x) { return vf_div(vf_set1(1), vf_add(vf_set1(1), math_exp(vf_neg(x)))); }
/* 0 and a NaN are left as they are. */
VEC_INLINE vf root(vf x) {
    vf size = vf_sqrt(vf_max(vf_set1(1e-6f), vf_abs(x)));
    return vf_if_lt(vf_zero(), x, size, vf_if_lt(x, vf_zero(), vf_neg(size), x));
}

VEC_INLINE vf identity(vf x) { return x; }

/* e^x - 1 - x for x <= 0: what is left of the series where the difference would cancel. */
VEC_INLINE vf exp_beyond_line(vf x) {
    vf p = vf_set1(1 / 40320.0f);
    p = vf_fma(p, x, vf_set1(1 / 5040.0f));
    p = vf_fma(p, x, vf_set1(1 / 720.0f));
    p = vf_fma(p, x, vf_set1(1 / 120.0f));
    p = vf_fma(p, x, vf_set1(1 / 24.0f));
    p = vf_fma(p, x, vf_set1(1 / 6.0f));
    p = vf_fma(p, x, vf_set1(0.5f));
    vf far = vf_sub(vf_sub(math_exp(x), vf_set1(1)), x);
    return vf_if_lt(x, vf_set1(-0.5f), far, vf_mul(vf_mul(x, x), p));
}

static void xielu(const float *x, const struct xielu *args, float *y, size_t n) {
    vf beta = vf_set1(args->beta), eps = vf_set1(args->eps);
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf v = get(x + i, m), cut = vf_min(eps, v);
        vf high = vf_mul(v, vf_fma(v, vf_set1(args->above), beta));
        vf low = vf_mul(vf_add(exp_beyond_line(cut), vf_sub(cut, v)), vf_set1(args->below));
        put(y + i, vf_if_lt(vf_zero(), v, high, vf_fma(v, beta, low)), m);
    }
}

/* F(name, kind, its function of a vector) for each activation. */
#define BODY_ACTS(F)                           \
    F(silu, ACT_SILU, silu)                    \
    F(gelu_tanh, ACT_GELU_TANH, gelu_tanh)     \
    F(gelu_erf, ACT_GELU_ERF, gelu_erf)        \
    F(gelu_quick, ACT_GELU_QUICK, gelu_quick)  \
    F(relu, ACT_RELU, relu)                    \
    F(relu2, ACT_RELU2, relu2)                 \
    F(sigmoid, ACT_SIGMOID, sigmoid)           \
    F(tanh, ACT_TANH, math_tanh)               \
    F(softplus, ACT_SOFTPLUS, math_softplus)   \
    F(exp, ACT_EXP, math_exp)                  \
    F(root, ACT_ROOT, root)                    \
    F(identity, ACT_IDENTITY, identity)

/* A gate of a whole run is one lane's value, whichever lane it is in. */
#define ACT(name, kind, f)                                                                  \
    static void act_##name(const float *x, float *y, size_t n) {                            \
        for (size_t i = 0; i < n; i += VF) {                                                \
            uint32_t m = part(n - i);                                                       \
            put(y + i, f(get(x + i, m)), m);                                                \
        }                                                                                   \
    }                                                                                       \
    static void glu_##name(const float *gate, const float *up, float *y, size_t n,          \
                           size_t run) {                                                    \
        for (size_t i = 0; run == 1 && i < n; i += VF) {                                    \
            uint32_t m = part(n - i);                                                       \
            put(y + i, vf_mul(f(get(gate + i, m)), get(up + i, m)), m);                     \
        }                                                                                   \
        for (size_t i = 0; run > 1 && i < n; i += run) {                                    \
            float g[VF];                                                                    \
            vf_store(g, f(vf_set1(gate[i / run])));                                         \
            scale(up + i, g[0], y + i, run);                                                \
        }                                                                                   \
    }
BODY_ACTS(ACT)
#undef ACT

static void glu_clamped(const float *gate, const float *up, const struct glu_clamp *c, float *y,
                        size_t n) {
    for (size_t i = 0; i < n; i += VF) {
        uint32_t m = part(n - i);
        vf g = vf_min(vf_set1(c->limit), get(gate + i, m));
        vf u = vf_max(vf_set1(-c->up_limit), get(up + i, m));
        u = vf_add(vf_min(vf_set1(c->up_limit), u), vf_set1(c->up_add));
        put(y + i, vf_mul(u, swish(g, vf_set1(c->alpha))), m);
    }
}
