/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.h: the small vector vocabulary in which simple ops are written once. A `vf` is 16 floats on
 * every ISA (one register of AVX-512, two of AVX2, four of NEON, an array in plain C), because the
 * law's sums have 16 lanes: a body over it gives the same bits everywhere by construction.
 *
 *     vf_zero, vf_set1(s)                vf_load(p), vf_store(p, v): any alignment
 *     vf_load_n(p, n), vf_store_n(p, v, n): the first n < 16, the others zero or left alone
 *     vf_load_f16, vf_store_f16 and _n: the same from and to halves, rounded to nearest even
 *     vf_add, vf_sub, vf_mul, vf_div     vf_fma(a, b, c) = a * b + c, rounded once
 *     vf_fnma(a, b, c) = c - a * b       vf_abs, vf_neg, vf_copysign(size, sign)
 *     vf_max(a, b) = a > b ? a : b, vf_min(a, b) = a < b ? a : b: so b where one is a NaN
 *     vf_if_lt(a, b, x, y) = a < b ? x : y
 *     vf_exp2(t): 2^n where t = 1.5 * 2^23 + n: n moved into the exponent, no rounding
 *     vf_iota(): 0, 1 .. 15
 *     vf_sum(v), vf_top(v): sum and maximum of the lanes as (l, l+8), (l, l+4), (l, l+2), (l, l+1)
 *     vf_unzip(a, b, &even, &odd), vf_zip: 32 floats as pairs and back
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
