/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.c: see kernels.h. The overlays are made once, by whoever asks first; every member of
 * struct kernels is one pointer, so a table is an array of slots. */
#include "kernels/kernels.h"

#include <string.h>
#include <threads.h>

#include "kernels/tables.h"

typedef void slot(void);
enum { SLOTS = sizeof(struct kernels) / sizeof(slot *) };
_Static_assert(sizeof(struct kernels) % sizeof(slot *) == 0, "members are pointers");

/* Ascending within an architecture; NULL: not built for this one. */
static const struct kernels *const folder[CPU_ISAS] = {
    [CPU_SCALAR] = &kernels_table_scalar,
#if defined(__x86_64__)
    [CPU_AVX2] = &kernels_table_avx2,
    [CPU_AVXVNNI] = &kernels_table_avxvnni,
    [CPU_AVX512] = &kernels_table_avx512,
#if defined(OB_AMX)
    [CPU_AMX] = &kernels_table_amx,
#endif
#elif defined(__aarch64__)
    [CPU_NEON] = &kernels_table_neon,
    [CPU_I8MM] = &kernels_table_i8mm,
#endif
};

static struct kernels table[CPU_ISAS];
static once_flag made = ONCE_FLAG_INIT;

static void overlay(struct kernels *to, const struct kernels *from) {
    for (size_t i = 0; i < SLOTS; i++) {
        slot *s;
        memcpy(&s, (const char *)from + i * sizeof s, sizeof s);
        if (s) memcpy((char *)to + i * sizeof s, &s, sizeof s);
    }
}

static void make(void) {
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (isa > 0) table[isa] = table[isa - 1];
        if (folder[isa]) overlay(&table[isa], folder[isa]);
    }
}

const struct kernels *kernels_table(enum cpu_isa isa) {
    call_once(&made, make);
    return &table[isa];
}

static bool same_slot(const struct kernels *a, const struct kernels *b, size_t offset) {
    return a && memcmp((const char *)a + offset, (const char *)b + offset, sizeof(slot *)) == 0;
}

const char *kernels_origin(const struct kernels *t, size_t offset) {
    for (int isa = CPU_ISAS; isa-- > 0;)
        if (same_slot(folder[isa], t, offset)) return folder[isa]->name;
    return t->name;
}

const struct kernels *kernels_ref(void) { return &kernels_table_ref; }

bool kernels_packs_floats(const struct kernels *t, const struct quant *quant) {
    enum quant_index index = quant_index_of(quant);
    return t->float_pack && (index == QUANT_bf16 || index == QUANT_f16);
}

/* Two pieces of two bytes, of whole blocks of 32 columns. */
size_t float_packed_bytes(uint32_t cols, uint32_t tokens) {
    return ((size_t)cols + 31) / 32 * 32 * 4 * tokens;
}

/* The scores of every row in one page, and the queries in int8. */
size_t attention_scratch(uint32_t k_dim) {
    return ATTENTION_ROWS * (sizeof(float) * ATTENTION_PAGE + attention_query_bytes(k_dim));
}
