/* SPDX-License-Identifier: Apache-2.0
 * act.c: rows of activations in 8 bits; numerics and layout in kernels.h. */
#include "kernels/body/act.h"

#include <arm_neon.h>

#include "kernels/body/linear.h"

void act_quantize_neon(const float *x, uint32_t cols, void *row) {
    struct act_parts to = act_parts(row, cols);
    for (uint32_t k = 0; k < cols; k += ACT_BLOCK) {
        uint32x4_t max = vdupq_n_u32(0);
        for (int i = 0; i < 8; i++) {
            uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + k + 4 * i));
            max = vmaxq_u32(max, vandq_u32(bits, vdupq_n_u32(0x7fffffff)));
        }
        float inverse = act_scale(vmaxvq_u32(max), to.d++);
        int32x4_t some = vdupq_n_s32(inverse == 0 ? 0 : -1);
        for (int half = 0; half < 2; half++) {
            int16x8_t words[2];
            for (int i = 0; i < 2; i++) {
                const float *from = x + k + 16 * half + 8 * i;
                int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(from), inverse));
                int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(from + 4), inverse));
                words[i] =
                    vcombine_s16(vmovn_s32(vandq_s32(a, some)), vmovn_s32(vandq_s32(b, some)));
            }
            vst1q_s8(to.q + k + 16 * half, vcombine_s8(vmovn_s16(words[0]), vmovn_s16(words[1])));
            *to.sum16++ = vaddvq_s16(vaddq_s16(words[0], words[1]));
        }
    }
}
