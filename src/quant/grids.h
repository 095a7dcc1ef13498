/* SPDX-License-Identifier: Apache-2.0
 *
 * grids.h: the tables of the IQ1, IQ2 and IQ3 formats and the steps from a table row to codes. On
 * the CPU there is one copy, in grids.c; a GPU module has its own. */
#ifndef QUANT_GRIDS_H
#define QUANT_GRIDS_H

#include "quant/unpack.h"

#if QUANT_GPU
#define GRID QUANT_TABLE
#include "quant/grids_data.h"
#else
extern const uint8_t iq1_s_grid[2048][8]; /* 8 * (-1, 0, 1) + 128 */
extern const uint8_t iq2_s_grid[1024][8]; /* magnitudes 8, 25, 43 */
extern const uint8_t iq2_xs_grid[512][8];
extern const uint8_t iq2_xxs_grid[256][8];
extern const uint8_t iq3_s_grid[512][4];   /* magnitudes 1, 3, ... 15 */
extern const uint8_t iq3_xxs_grid[256][4]; /* magnitudes 4, 12, ... 52, 62 */
#endif

/* Eight signs stored as seven bits (higher ones are ignored): the eighth makes them even. */
QUANT_FN uint32_t grid_signs7(uint32_t bits) {
    uint32_t parity = bits & 127;
    parity ^= parity >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return (bits & 127) | (parity & 1) << 7;
}

/* n magnitudes (4 or 8), negative where the bit of `signs` is set, + 128. */
QUANT_FN void grid_codes(const uint8_t *grid, uint32_t n, uint32_t signs, uint8_t *code) {
    for (uint32_t i = 0; i < n; i++)
        code[i] = (uint8_t)(signs & 1u << i ? 128 - grid[i] : 128 + grid[i]);
}

#endif
