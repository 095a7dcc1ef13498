/* SPDX-License-Identifier: Apache-2.0
 * store.c: see store.h. A ring of texts: JSON values are not shared between threads. */
#include "server/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum { ENTRIES = 1024, BYTES_MAX = 64 << 20 };

struct store {
    os_mutex lock;
    struct entry {
        char id[48];
        char *text; /* NULL: none */
        size_t n;
    } entry[ENTRIES];
    size_t next, oldest; /* of the ring */
    size_t bytes;
};

struct store *store_open(void) {
    struct store *store = calloc(1, sizeof *store);
    if (store) os_mutex_init(&store->lock);
    return store;
}

static void drop(struct store *store, size_t i) {
    struct entry *e = &store->entry[i];
    if (!e->text) return;
    store->bytes -= e->n;
    free(e->text);
    e->text = NULL;
}

void store_close(struct store **store) {
    if (!*store) return;
    for (size_t i = 0; i < ENTRIES; i++) drop(*store, i);
    os_mutex_free(&(*store)->lock);
    free(*store);
    *store = NULL;
}

void store_put(struct store *store, const char *id, const json_t *json) {
    char *text = json_dumps(json, JSON_COMPACT);
    size_t n = text ? strlen(text) : 0;
    if (!text || n > BYTES_MAX) {
        free(text);
        return;
    }
    os_lock(&store->lock);
    struct entry *e = &store->entry[store->next];
    if (e->text) store->oldest = (store->next + 1) % ENTRIES;
    drop(store, store->next);
    while (store->bytes + n > BYTES_MAX && store->oldest != store->next) {
        drop(store, store->oldest);
        store->oldest = (store->oldest + 1) % ENTRIES;
    }
    *e = (struct entry){.text = text, .n = n};
    snprintf(e->id, sizeof e->id, "%s", id);
    store->bytes += n;
    store->next = (store->next + 1) % ENTRIES;
    os_unlock(&store->lock);
}

json_t *store_get(struct store *store, const char *id) {
    json_t *json = NULL;
    os_lock(&store->lock);
    for (size_t i = 0; i < ENTRIES; i++)
        if (store->entry[i].text && strcmp(store->entry[i].id, id) == 0)
            json = json_loadb(store->entry[i].text, store->entry[i].n, 0, NULL);
    os_unlock(&store->lock);
    return json;
}
