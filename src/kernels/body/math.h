/* SPDX-License-Identifier: Apache-2.0
 *
 * math.h: exp, softplus, tanh, erf over vec.h: one polynomial, hence the same bits on every ISA.
 * The coefficients are minimax fits made by tools/math_poly.py; `1bit-check --func math` measures
 * the errors: exp and tanh within 1.5 ULP, erf within 2, softplus 3. A NaN gives a NaN.
 *
 * Range reduction of exp: Cody and Waite, Software Manual for the Elementary Functions, 1980. */
#ifndef KERNELS_BODY_MATH_H
#define KERNELS_BODY_MATH_H

#include <math.h>

/* e^x; 0 below -87 (so no denormal slows what follows), infinity above 88. */
VEC_INLINE vf math_exp(vf x) {
    const vf magic = vf_set1(0x1.8p+23f);
    vf t = vf_fma(x, vf_set1(0x1.715476p+0f), magic); /* n = x / ln 2, to the nearest integer */
    vf n = vf_sub(t, magic);
    vf r = vf_fnma(n, vf_set1(0x1.62e4p-1f), x);      /* ln 2 in two parts */
    r = vf_fnma(n, vf_set1(0x1.7f7d1cp-20f), r);
    vf p = vf_set1(0x1.6a1a72p-10f);
    p = vf_fma(p, r, vf_set1(0x1.123fc6p-7f));
    p = vf_fma(p, r, vf_set1(0x1.555916p-5f));
    p = vf_fma(p, r, vf_set1(0x1.55548ap-3f));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2f));
    p = vf_add(vf_fma(vf_mul(r, r), p, r), vf_set1(1));
    vf e = vf_mul(p, vf_exp2(t));
    e = vf_if_lt(x, vf_set1(-87), vf_zero(), e);
    return vf_if_lt(vf_set1(88), x, vf_set1(INFINITY), e);
}

/* log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|, and log(1 + t) = 2 atanh(t / (2 + t));
 * above 20 x itself. */
VEC_INLINE vf math_softplus(vf x) {
    vf t = math_exp(vf_neg(vf_abs(x))), s = vf_div(t, vf_add(t, vf_set1(2))), z = vf_mul(s, s);
    vf p = vf_set1(0x1.1eca18p-3f);
    p = vf_fma(p, z, vf_set1(0x1.1ec04p-3f));
    p = vf_fma(p, z, vf_set1(0x1.99d1ccp-3f));
    p = vf_fma(p, z, vf_set1(0x1.555502p-2f));
    vf twice = vf_add(s, s);
    vf y = vf_add(vf_max(vf_zero(), x), vf_fma(vf_mul(p, z), twice, twice));
    return vf_if_lt(vf_set1(20), x, x, y);
}

VEC_INLINE vf math_tanh(vf x) {
    vf a = vf_abs(x), z = vf_mul(x, x);
    vf p = vf_set1(-0x1.750ce4p-8f);
    p = vf_fma(p, z, vf_set1(0x1.51f8cep-6f));
    p = vf_fma(p, z, vf_set1(-0x1.b835a4p-5f));
    p = vf_fma(p, z, vf_set1(0x1.1106f6p-3f));
    p = vf_fma(p, z, vf_set1(-0x1.555532p-2f));
    vf low = vf_fma(vf_mul(p, z), a, a);
    vf e = vf_add(math_exp(vf_add(a, a)), vf_set1(1));
    vf high = vf_sub(vf_set1(1), vf_div(vf_set1(2), e));
    return vf_copysign(vf_if_lt(a, vf_set1(0.625f), low, high), x);
}

VEC_INLINE vf math_erf(vf x) {
    vf a = vf_min(vf_set1(4), vf_abs(x)), z = vf_mul(a, a);
    vf p = vf_set1(0x1.4771fep-14f);
    p = vf_fma(p, z, vf_set1(-0x1.a3515ep-11f));
    p = vf_fma(p, z, vf_set1(0x1.53f224p-8f));
    p = vf_fma(p, z, vf_set1(-0x1.b7f71ap-6f));
    p = vf_fma(p, z, vf_set1(0x1.ce2ce6p-4f));
    p = vf_fma(p, z, vf_set1(-0x1.81273ep-2f));
    p = vf_fma(p, z, vf_set1(0x1.06eba8p-3f));
    vf low = vf_fma(p, a, a);
    vf q = vf_set1(0x1.da3f44p-17f); /* -log(erfc(a)) / a */
    q = vf_fma(q, a, vf_set1(-0x1.7171fcp-12f));
    q = vf_fma(q, a, vf_set1(0x1.ed70cep-9f));
    q = vf_fma(q, a, vf_set1(-0x1.89a23ap-6f));
    q = vf_fma(q, a, vf_set1(0x1.b46cd0p-4f));
    q = vf_fma(q, a, vf_set1(0x1.451942p-1f));
    q = vf_fma(q, a, vf_set1(0x1.20f24cp+0f));
    vf high = vf_sub(vf_set1(1), math_exp(vf_neg(vf_mul(q, a))));
    return vf_copysign(vf_if_lt(a, vf_set1(1), low, high), x);
}

#endif
