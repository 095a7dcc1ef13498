/* SPDX-License-Identifier: Apache-2.0
 * array.h: growing arrays of the grammar's parts: room for one more, doubled when there is none. */
#ifndef SAMPLE_GRAMMAR_ARRAY_H
#define SAMPLE_GRAMMAR_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* *p, an array of *cap elements, holds at least `need` afterwards; false: out of memory. */
static inline bool array_room(void **p, uint32_t *cap, size_t need, size_t element) {
    if (need <= *cap) return true;
    size_t n = *cap ? *cap : 16;
    while (n < need) n *= 2;
    if (n > UINT32_MAX || n > SIZE_MAX / element) return false;
    void *more = realloc(*p, n * element);
    if (!more) return false;
    *p = more;
    *cap = (uint32_t)n;
    return true;
}
#define ARRAY_ROOM(p, cap, need) array_room((void **)&(p), &(cap), (need), sizeof *(p))

#endif
