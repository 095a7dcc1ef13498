/* SPDX-License-Identifier: Apache-2.0
 *
 * kv.h: the number formats of a key/value cache. Keys and values each have one. A position of one
 * head is a row of the format: as many bytes, blocks along its features. How a device arranges
 * those bytes inside a page is its own. Constant, thread safe. */
#ifndef QUANT_KV_H
#define QUANT_KV_H

#include "quant/quant.h"

enum kv_type {
#define KV_TYPE(name) KV_##name,
#include "quant/kv_types.def"
#undef KV_TYPE
    KV_TYPES
};

struct kv_types { enum kv_type k, v; };

const char *kv_name(enum kv_type type); /* "q8_0" */
const struct quant *kv_quant(enum kv_type type);
bool kv_find(const char *name, enum kv_type *out); /* false, and *out as it was, if unknown */

/* Bytes of one position of one head; 0 where a dimension is no whole number of blocks. v_dim
 * may be 0. */
size_t kv_position_bytes(struct kv_types types, uint32_t k_dim, uint32_t v_dim);

#endif
