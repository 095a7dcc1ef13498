/* SPDX-License-Identifier: Apache-2.0
 * table.c: see table.h. */
#include "sample/schema/table.h"

#include <stdlib.h>

struct table_entry {
    struct str key; /* p NULL: free */
    uint32_t value;
};

static struct table_entry *place(struct table_entry *entry, size_t cap, struct str key) {
    size_t at = (size_t)str_hash(key) & (cap - 1);
    while (entry[at].key.p && !str_eq(entry[at].key, key)) at = (at + 1) & (cap - 1);
    return &entry[at];
}

uint32_t *table_find(const struct table *table, struct str key) {
    if (!table->cap) return NULL;
    struct table_entry *e = place(table->entry, table->cap, key);
    return e->key.p ? &e->value : NULL;
}

static bool grow(struct table *table) {
    size_t cap = table->cap ? 2 * table->cap : 64;
    struct table_entry *entry = calloc(cap, sizeof *entry);
    if (!entry) return false;
    for (size_t i = 0; i < table->cap; i++)
        if (table->entry[i].key.p) *place(entry, cap, table->entry[i].key) = table->entry[i];
    free(table->entry);
    table->entry = entry;
    table->cap = cap;
    return true;
}

bool table_add(struct table *table, struct arena *arena, struct str key, uint32_t value) {
    if (2 * (table->n + 1) > table->cap && !grow(table)) return false;
    key.p = arena_copy(arena, key.n ? key.p : "", key.n);
    if (!key.p) return false;
    struct table_entry *e = place(table->entry, table->cap, key);
    *e = (struct table_entry){key, value};
    table->n++;
    return true;
}

void table_free(struct table *table) {
    free(table->entry);
    *table = (struct table){0};
}
