/* SPDX-License-Identifier: Apache-2.0
 * mxfp4.c: descriptor of MXFP4; layout in mxfp4.h. */
#include "quant/mxfp4.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct mxfp4_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < MXFP4_BLOCK / MXFP4_SUB; s++, dst += MXFP4_SUB) {
            uint8_t code[MXFP4_SUB];
            float scale, min;
            mxfp4_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, MXFP4_SUB, scale, MXFP4_OFFSET, min, dst);
        }
    }
}

const struct quant quant_mxfp4 = {
    .name = "MXFP4",
    .id = 39,
    .block = MXFP4_BLOCK,
    .bytes = sizeof(struct mxfp4_block),
    .decode = decode,
    .sub = MXFP4_SUB,
    .offset = MXFP4_OFFSET,
    .unpack = mxfp4_unpack,
};
