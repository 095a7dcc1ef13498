/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.h: one token's products, straight from the rows of a tile. Unpacking into tile order pays
 * only when several tokens share it; for one it would be most of the work. Same bits as unpack and
 * mul. */
#ifndef KERNELS_AVX512_GEMV_H
#define KERNELS_AVX512_GEMV_H

#include "kernels/body/linear_tile.h"

/* gemv_32.c */
tile_gemv gemv_q4_0_avx512, gemv_q4_1_avx512, gemv_q5_0_avx512, gemv_q5_1_avx512, gemv_q8_0_avx512,
    gemv_iq4_nl_avx512, gemv_mxfp4_avx512;
/* gemv_k.c */
tile_gemv gemv_q2_k_avx512, gemv_q3_k_avx512, gemv_q4_k_avx512, gemv_q5_k_avx512, gemv_q6_k_avx512,
    gemv_iq4_xs_avx512;

#endif
