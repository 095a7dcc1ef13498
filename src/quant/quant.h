/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h: face of quant/: every weight format, its block and its reference decode. A format is one
 * <fmt>.h (block struct, decode of one sub-block in the C that nvcc and clang also accept), one
 * <fmt>.c (its descriptor) and one row of quants.def. Decode is bit-exact with the reference
 * (`gguf` package; libggml where it has none). Thread safe: all constant. */
#ifndef QUANT_QUANT_H
#define QUANT_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quant {
    const char *name;     /* as GGUF tools print it, "Q4_K" */
    uint32_t id;          /* GGUF tensor type number */
    uint32_t block;       /* weights a block holds; rows are whole blocks */
    uint32_t bytes;       /* bytes of a block */
    /* n blocks at src (any alignment) to n * block floats. Never fails: every byte pattern is some
     * number (maybe not finite). */
    void (*decode)(const void *src, float *dst, size_t n);
    /* n * block floats to n blocks; NULL where no encoder exists yet. */
    void (*encode)(const float *src, void *dst, size_t n);

    /* ---- integer view, for kernels; unpack is NULL and sub 0 for the float formats ----
     * One block to `block` codes, block / sub scales and as many mins (0 unless has_min), so that
     * in float arithmetic, in this order and bit for bit what decode gives:
     *     weight[i] = scale[i / sub] * (code[i] - offset) - min[i / sub]
     * code - offset fits int8; the product is exact for all formats but Q8_K (its scale is a whole
     * float). <fmt>.h has it inline as <fmt>_unpack, and <fmt>_sub for one sub-block. */
    uint32_t sub;    /* weights that share a scale: 16 or 32 */
    uint8_t offset;  /* 0, 1, 4, 8, 16, 32 or 128 */
    bool has_min;
    void (*unpack)(const void *block, uint8_t *code, float *scale, float *min);
};

/* Index of a format in quants.def: dense, for tables of kernels. */
enum quant_index {
#define QUANT(name) QUANT_##name,
#include "quant/quants.def"
#undef QUANT
    QUANT_COUNT
};

extern const struct quant *const quant_list[QUANT_COUNT];

/* By GGUF type number, or by name in any case; NULL if unknown. */
const struct quant *quant_find(uint32_t id);
const struct quant *quant_named(const char *name);
enum quant_index quant_index_of(const struct quant *quant);

/* Bytes of a row of `cols` weights; 0 if cols is 0, no whole number of blocks, or the product
 * overflows. */
size_t quant_row_bytes(const struct quant *quant, uint64_t cols);

/* ---- half precision; inline in half.h ----
 * Every NaN stays a NaN (float16's made quiet, as F16C and NEON do), denormals are kept whatever
 * the processor's denormal mode. */
float quant_f16_to_f32(uint16_t h);
uint16_t quant_f32_to_f16(float f); /* round to nearest even */
float quant_bf16_to_f32(uint16_t b);
uint16_t quant_f32_to_bf16(float f); /* round to nearest even; NaN stays quiet */

#endif
