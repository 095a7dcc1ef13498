/* SPDX-License-Identifier: Apache-2.0
 *
 * tq1_0.h: TQ1_0, 256 ternary weights in 54 bytes, five to a byte, one scale.
 *
 *   byte 0              32             48      52   54
 *        | qs: 32 x 5   | qs: 16 x 5   | qh:   | d  |      d: float16
 *        | weights      | weights      | 4 x 4 |
 *
 *   A byte is a fraction x / 256 in base 3: multiplying by 3 pushes the next digit (the code) above
 *   the byte, so digit n is ((x * 3^n mod 256) * 3) / 256.
 *     weight       32 n + i, n = 0..4, i < 32: digit n of qs[i]
 *     weight 160 + 16 n + i, n = 0..4, i < 16: digit n of qs[32 + i]
 *     weight 240 +  4 n + i, n = 0..3, i < 4:  digit n of qh[i]
 *   weight = d * (code - 1) */
#ifndef QUANT_TQ1_0_H
#define QUANT_TQ1_0_H

#include "quant/unpack.h"

enum { TQ1_0_BLOCK = 256, TQ1_0_SUB = 32, TQ1_0_OFFSET = 1 };

struct tq1_0_block {
    uint8_t qs[48];
    uint8_t qh[4];
    uint8_t d[2];
};

/* Digit n of `count` bytes. */
QUANT_FN void tq1_0_digits(const uint8_t *qs, uint32_t count, uint32_t n, uint8_t *code) {
    uint32_t power = n == 0 ? 1 : n == 1 ? 3 : n == 2 ? 9 : n == 3 ? 27 : 81;
    for (uint32_t i = 0; i < count; i++) code[i] = (uint8_t)((qs[i] * power & 255) * 3 >> 8);
}

QUANT_FN void tq1_0_sub(const struct tq1_0_block *b, uint32_t s, uint8_t *code, float *scale,
                        float *min) {
    if (s < 5) {
        tq1_0_digits(b->qs, 32, s, code);
    } else {
        tq1_0_digits(b->qs + 32, 16, s * 2 - 10, code);
        if (s < 7) tq1_0_digits(b->qs + 32, 16, s * 2 - 9, code + 16);
        for (uint32_t n = 0; s == 7 && n < 4; n++) tq1_0_digits(b->qh, 4, n, code + 16 + n * 4);
    }
    *scale = quant_load_half(b->d);
    *min = 0;
}

QUANT_FN void tq1_0_unpack(const void *block, uint8_t *code, float *scale, float *min) {
    const struct tq1_0_block *b = (const struct tq1_0_block *)block;
    for (uint32_t s = 0; s < 8; s++) tq1_0_sub(b, s, code + s * 32, scale + s, min + s);
}

#endif
