/* SPDX-License-Identifier: Apache-2.0
 * inline.h: what the kernels' inner loops ask of both compilers. */
#ifndef KERNELS_BODY_INLINE_H
#define KERNELS_BODY_INLINE_H

#define INLINE static inline __attribute__((always_inline))

/* Before a loop of constant trip count up to 16: unroll it whole. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
