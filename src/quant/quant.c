/* SPDX-License-Identifier: Apache-2.0
 * quant.c: the list of formats, ways to find one, row sizes, half conversions as functions. */
#include "quant/quant.h"

#include <assert.h>
#include <strings.h>

#include "quant/half.h"

#define QUANT(name) extern const struct quant quant_##name;
#include "quant/quants.def"
#undef QUANT

const struct quant *const quant_list[QUANT_COUNT] = {
#define QUANT(name) &quant_##name,
#include "quant/quants.def"
#undef QUANT
};

const struct quant *quant_find(uint32_t id) {
    for (size_t i = 0; i < QUANT_COUNT; i++)
        if (quant_list[i]->id == id) return quant_list[i];
    return NULL;
}

const struct quant *quant_named(const char *name) {
    for (size_t i = 0; i < QUANT_COUNT; i++)
        if (!strcasecmp(quant_list[i]->name, name)) return quant_list[i];
    return NULL;
}

enum quant_index quant_index_of(const struct quant *quant) {
    size_t i = 0;
    while (i < QUANT_COUNT && quant_list[i] != quant) i++;
    assert(i < QUANT_COUNT);
    return (enum quant_index)i;
}

size_t quant_row_bytes(const struct quant *quant, uint64_t cols) {
    size_t bytes;
    if (cols % quant->block) return 0;
    return __builtin_mul_overflow(cols / quant->block, quant->bytes, &bytes) ? 0 : bytes;
}

float quant_f16_to_f32(uint16_t h) { return half_f16_to_f32(h); }
uint16_t quant_f32_to_f16(float f) { return half_f32_to_f16(f); }
float quant_bf16_to_f32(uint16_t b) { return half_bf16_to_f32(b); }
uint16_t quant_f32_to_bf16(float f) { return half_f32_to_bf16(f); }
