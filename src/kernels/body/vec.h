/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.h: the small vector vocabulary in which simple ops are written once. A `vf` is 16 floats on
 * every ISA (one register of AVX-512, two of AVX2, four of NEON, an array in plain C), because the
 * law's sums have 16 lanes: a body over it gives the same bits everywhere by construction.
 *
 *     vf_zero, vf_set1(s)                vf_load(p), vf_store(p, v): any alignment
 *     vf_load_n(p, n), vf_store_n(p, v, n): the first n < 16, the others zero or left alone
 *     vf_load_f16, vf_store_f16 and _n: the same from and to halves, rounded to nearest even
 *     vf_load_bf16, vf_store_bf16: from and to bfloat16; vf_load_i8, vf_store_i8: from and to int8,
 *         what is stored lies in [-128, 127]
 *     vf_load_low(p), vf_load_high(p): the low or high nibbles of 16 bytes, less 8
 *     vf_add, vf_sub, vf_mul, vf_div     vf_fma(a, b, c) = a * b + c, rounded once
 *     vf_fnma(a, b, c) = c - a * b       vf_abs, vf_neg, vf_sqrt, vf_copysign(size, sign)
 *     vf_max(a, b) = a > b ? a : b, vf_min(a, b) = a < b ? a : b: so b where one is a NaN
 *     vf_if_lt(a, b, x, y) = a < b ? x : y
 *     vf_exp2(t): 2^n where t = 1.5 * 2^23 + n: n moved into the exponent, no rounding
 *     vf_iota(): 0, 1 .. 15
 *     vf_sum(v), vf_top(v): sum and maximum of the lanes as (l, l+8), (l, l+4), (l, l+2), (l, l+1)
 *     vf_unzip(a, b, &even, &odd), vf_zip: 32 floats as pairs and back
 *
 * A `vi` is 16 int32, a `vb` 16 groups of 4 int8:
 *     vb_load(p); vi_start(sum): what sums of its products with a row q of that sum begin with
 *     vb_load_nibbles(p, &low, &high): the nibbles of 64 bytes, not less 8
 *     vi_dot(a, b, q): a[l] += the dot product of group l of b and q[0..4)
 *     vi_set1(i); vf_from_vi(a): rounded to nearest even
 *
 * Exactly one vec_<isa>.h is included before a body; both are for table.c of that ISA. */
#ifndef KERNELS_BODY_VEC_H
#define KERNELS_BODY_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VF = 16 };
#define VEC_INLINE static inline __attribute__((always_inline))

#endif
