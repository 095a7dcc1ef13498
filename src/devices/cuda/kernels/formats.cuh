/* SPDX-License-Identifier: Apache-2.0
 *
 * formats.cuh: every weight format for kernels: the decode of quant/<fmt>.h behind one shape. An
 * integer format F has F::SUB weights a sub-block, F::sub() gives codes, scale and min of sub-block
 * s of a row of `blocks` blocks; a float format has F::at().
 *
 * Rows lie as in the file, but for blocks that no 16 bytes align:
 *     q6_k   low nibbles [blocks][128] · high bits [blocks][64] · scales [blocks][16] · d [blocks]
 *            of 64 weights: byte i of 32 has the low bits of weights i and 32 + i; byte i of 16 has
 *            the high bits of weights i, 16 + i, 32 + i, 48 + i, the first lowest
 *     q8_0   codes [blocks][32] · d [blocks]
 * each row padded to 16 bytes (pack.cu makes them). */
#ifndef DEVICES_CUDA_KERNELS_FORMATS_CUH
#define DEVICES_CUDA_KERNELS_FORMATS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "quant/iq1_m.h"
#include "quant/iq1_s.h"
#include "quant/iq2_s.h"
#include "quant/iq2_xs.h"
#include "quant/iq2_xxs.h"
#include "quant/iq3_s.h"
#include "quant/iq3_xxs.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/q8_k.h"
#include "quant/tq1_0.h"
#include "quant/tq2_0.h"

/* F(name, NAME) for the integer formats, F(name) for the others. */
#define RAW_FORMATS(F)                                                                        \
    F(iq1_m, IQ1_M) F(iq1_s, IQ1_S) F(iq2_s, IQ2_S) F(iq2_xs, IQ2_XS) F(iq2_xxs, IQ2_XXS)     \
    F(iq3_s, IQ3_S) F(iq3_xxs, IQ3_XXS) F(iq4_nl, IQ4_NL) F(iq4_xs, IQ4_XS) F(mxfp4, MXFP4)   \
    F(nvfp4, NVFP4) F(q2_k, Q2_K) F(q3_k, Q3_K) F(q4_0, Q4_0) F(q4_1, Q4_1) F(q4_k, Q4_K)     \
    F(q5_0, Q5_0) F(q5_1, Q5_1) F(q5_k, Q5_K) F(q8_k, Q8_K) F(tq1_0, TQ1_0) F(tq2_0, TQ2_0)
#define INTEGER_FORMATS(F) RAW_FORMATS(F) F(q6_k, Q6_K) F(q8_0, Q8_0)
#define FLOAT_FORMATS(F) F(bf16) F(f16) F(f32)

#define FORMAT(name, NAME)                                                                    \
    struct format_##name {                                                                    \
        static constexpr bool integer = true;                                                 \
        enum { BLOCK = NAME##_BLOCK, SUB = NAME##_SUB, OFFSET = NAME##_OFFSET,                \
               BYTES = sizeof(struct name##_block) };                                         \
        static __device__ void sub(const uint8_t *row, uint32_t blocks, uint32_t s,           \
                                   uint8_t *code, float *scale, float *min) {                 \
            const uint32_t subs = BLOCK / SUB;                                                \
            const uint8_t *block = row + (size_t)(s / subs) * BYTES;                          \
            name##_sub((const struct name##_block *)block, s % subs, code, scale, min);       \
        }                                                                                     \
    };
RAW_FORMATS(FORMAT)
#undef FORMAT

struct format_q6_k {
    static constexpr bool integer = true;
    enum { BLOCK = Q6_K_BLOCK, SUB = Q6_K_SUB, OFFSET = Q6_K_OFFSET };
    static __device__ void sub(const uint8_t *row, uint32_t blocks, uint32_t s, uint8_t *code,
                               float *scale, float *min) {
        const uint8_t *low = row + s / 4 * 32, *high = row + (size_t)blocks * 128 + s / 4 * 16;
        const uint8_t *scales = row + (size_t)blocks * 192, *d = scales + (size_t)blocks * 16;
        for (uint32_t i = 0, w = s % 4 * 16; i < 16; i++, w++)
            code[i] = (low[w % 32] >> w / 32 * 4 & 15) | (high[i] >> w / 16 * 2 & 3) << 4;
        *scale = quant_load_half(d + s / 16 * 2) * (float)(int8_t)scales[s];
        *min = 0;
    }
};

struct format_q8_0 {
    static constexpr bool integer = true;
    enum { BLOCK = Q8_0_BLOCK, SUB = Q8_0_SUB, OFFSET = Q8_0_OFFSET };
    static __device__ void sub(const uint8_t *row, uint32_t blocks, uint32_t s, uint8_t *code,
                               float *scale, float *min) {
        for (uint32_t i = 0; i < 32; i++) code[i] = row[(size_t)s * 32 + i] ^ 128;
        *scale = quant_load_half(row + (size_t)blocks * 32 + s * 2);
        *min = 0;
    }
};

struct format_f32 {
    static constexpr bool integer = false;
    static __device__ float at(const uint8_t *row, uint32_t i) { return ((const float *)row)[i]; }
};
struct format_f16 {
    static constexpr bool integer = false;
    static __device__ float at(const uint8_t *row, uint32_t i) {
        return __half2float(((const __half *)row)[i]);
    }
};
struct format_bf16 {
    static constexpr bool integer = false;
    static __device__ float at(const uint8_t *row, uint32_t i) {
        return __bfloat162float(((const __nv_bfloat16 *)row)[i]);
    }
};

/* As in quant/quants.def. */
enum {
#define QUANT(name) FORMAT_##name,
#include "quant/quants.def"
#undef QUANT
};

#endif
