/* SPDX-License-Identifier: Apache-2.0
 * table.h: numbers by keys of bytes. */
#ifndef SAMPLE_SCHEMA_TABLE_H
#define SAMPLE_SCHEMA_TABLE_H

#include "base/arena.h"
#include "base/str.h"

struct table_entry;
struct table {
    struct table_entry *entry;
    size_t n, cap;
};

/* NULL: no such key. */
uint32_t *table_find(const struct table *table, struct str key);
/* A new key, copied into the arena. False: out of memory. */
bool table_add(struct table *table, struct arena *arena, struct str key, uint32_t value);
void table_free(struct table *table);

#endif
