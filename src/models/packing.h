/* SPDX-License-Identifier: Apache-2.0
 * packing.h: between packing.c, which reads quantization_config, packed_find.c, which finds the
 * tensors of a matrix, and packed.c, which reads its rows. */
#ifndef MODELS_PACKING_H
#define MODELS_PACKING_H

#include "models/packed.h"

enum method { METHOD_FP8, METHOD_GPTQ, METHOD_AWQ, METHOD_INTS, METHOD_BNB };

struct packing {
    enum method method;
    uint32_t bits;
    uint32_t group;              /* columns of a scale; 0: all */
    uint32_t block[2];           /* rows and columns of a scale of fp8; 0: not in blocks */
    uint32_t zero_add;           /* GPTQ's first format stores zero points less one */
    float f8[256];               /* values of F8_E4M3 */
    char text[64];
};

/* Element i of a tensor of floats. */
float packed_number(const struct source_tensor *t, size_t i);
float packed_scale(const struct packed *p, uint32_t row, uint32_t group);
int32_t packed_zero(const struct packed *p, uint32_t row, uint32_t group);
/* PACKED_TABLE */
float packed_block_scale(const struct packed *p, size_t block);

#endif
