/* SPDX-License-Identifier: Apache-2.0
 *
 * nvfp4.h: NVFP4, 64 weights in 36 bytes: E2M1 values; 4 sub-blocks of 16, scales in unsigned E4M3.
 *
 *   byte 0       4                    36
 *        | d: 4  | qs: 4 x 8 bytes    |
 *
 *   weight 16 s + i (i < 8): index = low nibble of qs[8 s + i];  16 s + 8 + i: its high nibble
 *   weight = d[s] / 2 * value[index], values doubled as in mxfp4.h;  code = value + 128
 *   (The tensor's own float scale is another tensor of the file and not applied here.) */
#ifndef QUANT_NVFP4_H
#define QUANT_NVFP4_H

#include "quant/mxfp4.h"

enum { NVFP4_BLOCK = 64, NVFP4_SUB = 16, NVFP4_OFFSET = 128 };

struct nvfp4_block {
    uint8_t d[4];
    uint8_t qs[32];
};

/* Half of an E4M3 (bias 7). The sign bit is ignored; 0x7f, the NaN, is 0, but 0xff is 480. */
QUANT_FN float nvfp4_scale(uint32_t d) {
    uint32_t e = d >> 3 & 15, m = d & 7;
    float small = (float)(int32_t)m * 0x1p-10f;
    float normal = half_float((e + 119) << 23 | m << 20);
    return d == 0x7f ? 0 : e ? normal : small;
}

QUANT_FN void nvfp4_sub(const struct nvfp4_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    const uint8_t *qs = b->qs + s * 8;
    for (uint32_t i = 0; i < 8; i++) {
        code[i] = mxfp4_value[qs[i] & 15];
        code[i + 8] = mxfp4_value[qs[i] >> 4];
    }
    *scale = nvfp4_scale(b->d[s]);
    *min = 0;
}

QUANT_FN void nvfp4_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct nvfp4_block *b = (const struct nvfp4_block *)block;
    for (uint32_t s = 0; s < 4; s++) nvfp4_sub(b, s, code + s * 16, scale + s, min + s);
}

#endif
