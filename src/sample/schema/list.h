/* SPDX-License-Identifier: Apache-2.0
 * list.h: a growing array of equal items. After running out of memory `failed` is set and items go
 * to a spare place, so that callers check once at the end. */
#ifndef SAMPLE_SCHEMA_LIST_H
#define SAMPLE_SCHEMA_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct list {
    void *p;
    size_t n, cap, size;
    bool failed;
    _Alignas(16) char spare[64]; /* size is at most that */
};
#define LIST_INIT(bytes) {.size = (bytes)}

/* A new item at the end, zeroed. */
static inline void *list_add(struct list *list) {
    if (!list->failed && list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 16;
        void *more = cap <= SIZE_MAX / 2 / list->size ? realloc(list->p, cap * list->size) : NULL;
        list->failed = !more;
        if (more) list->p = more, list->cap = cap;
    }
    void *at = list->failed ? list->spare : (char *)list->p + list->n++ * list->size;
    memset(at, 0, list->size);
    return at;
}

static inline void list_free(struct list *list) {
    free(list->p);
    list->p = NULL;
    list->n = list->cap = 0;
}

#endif
