/* SPDX-License-Identifier: Apache-2.0
 * kv.c: see kv.h. */
#include "quant/kv.h"

#include <string.h>

static const struct { const char *name; enum quant_index quant; } list[KV_TYPES] = {
#define KV_TYPE(name) {#name, QUANT_##name},
#include "quant/kv_types.def"
#undef KV_TYPE
};

const char *kv_name(enum kv_type type) { return list[type].name; }
const struct quant *kv_quant(enum kv_type type) { return quant_list[list[type].quant]; }

bool kv_find(const char *name, enum kv_type *out) {
    for (int i = 0; i < KV_TYPES; i++)
        if (strcmp(list[i].name, name) == 0) {
            *out = (enum kv_type)i;
            return true;
        }
    return false;
}

size_t kv_position_bytes(struct kv_types types, uint32_t k_dim, uint32_t v_dim) {
    size_t k = quant_row_bytes(kv_quant(types.k), k_dim);
    size_t v = quant_row_bytes(kv_quant(types.v), v_dim);
    return k && (v || v_dim == 0) ? k + v : 0;
}
