/* SPDX-License-Identifier: Apache-2.0
 * nvfp4.c: descriptor of NVFP4; layout in nvfp4.h. */
#include "quant/nvfp4.h"
#include "quant/quant.h"

static void decode(const void *src, float *dst, size_t n) {
    const struct nvfp4_block *b = src;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < NVFP4_BLOCK / NVFP4_SUB; s++, dst += NVFP4_SUB) {
            uint8_t code[NVFP4_SUB];
            float scale, min;
            nvfp4_sub(&b[i], s, code, &scale, &min);
            quant_expand(code, NVFP4_SUB, scale, NVFP4_OFFSET, min, dst);
        }
    }
}

const struct quant quant_nvfp4 = {
    .name = "NVFP4",
    .id = 40,
    .block = NVFP4_BLOCK,
    .bytes = sizeof(struct nvfp4_block),
    .decode = decode,
    .sub = NVFP4_SUB,
    .offset = NVFP4_OFFSET,
    .unpack = nvfp4_unpack,
};
