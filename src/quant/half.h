/* SPDX-License-Identifier: Apache-2.0
 *
 * half.h: float16 and bfloat16 to and from float, inline, in the C that nvcc and clang also accept;
 * and the macros that let one header serve CPU and GPU. Selections instead of branches, so loops
 * over these vectorise; no step touches a denormal float, so the result does not depend on the
 * denormal mode. Same bits as F16C (vcvtph2ps, vcvtps2ph to nearest even) for every input. */
#ifndef QUANT_HALF_H
#define QUANT_HALF_H

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(__HIP__)
#define QUANT_GPU 1
#define QUANT_FN static __device__ inline
#define QUANT_TABLE static __device__ const
#else
#define QUANT_GPU 0
#define QUANT_FN static inline
#define QUANT_TABLE static const
#endif

QUANT_FN uint32_t half_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

QUANT_FN float half_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/*   float16   s eeeee mmmmmmmmmm                  bias 15
 *   float     s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm  bias 127 */
QUANT_FN float half_f16_to_f32(uint16_t h) {
    int32_t a = h & 0x7fff; /* signed: SSE2 has no unsigned comparison */
    uint32_t sign = (uint32_t)(h ^ a) << 16;
    uint32_t small = half_bits((float)a * 0x1p-24f); /* denormal: mantissa times 2^-24 */
    uint32_t top = a > 0x7bff ? 112u << 23 : 0;      /* inf and NaN keep the top exponent ... */
    uint32_t quiet = a > 0x7c00 ? 0x400000 : 0;      /* ... and NaN becomes quiet */
    uint32_t u = (((uint32_t)a << 13) + (112u << 23) + top) | quiet;
    return half_float(sign | (a < 0x400 ? small : u));
}

QUANT_FN uint16_t half_f32_to_f16(float f) {
    uint32_t u = half_bits(f);
    uint32_t sign = u >> 16 & 0x8000;
    uint32_t a = u & 0x7fffffff;
    /* Below 2^-14 the unit is 2^-24, as it is for floats in [0.5, 1): the addition rounds. */
    uint32_t small = half_bits(half_float(a < 0x38800000 ? a : 0) + 0.5f) - 0x3f000000;
    uint32_t h = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
    h = a < 0x38800000 ? small : h;
    h = a >= 0x477ff000 ? 0x7c00 : h; /* 65520 and above round to infinity */
    h = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : h;
    return (uint16_t)(sign | h);
}

QUANT_FN float half_bf16_to_f32(uint16_t b) { return half_float((uint32_t)b << 16); }

QUANT_FN uint16_t half_f32_to_bf16(float f) {
    uint32_t u = half_bits(f);
    uint32_t nan = u >> 16 | 0x40;
    uint32_t b = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : b);
}

#endif
