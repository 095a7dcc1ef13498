/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h: memory with one lifetime (a model, a session, a request, a step). Allocation bumps a
 * pointer; everything is freed at once. Not thread safe: one owner. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *head; /* the block being filled; older ones behind it */
};

/* A zeroed struct is an empty arena. */
#define ARENA_INIT {0}

/* Zeroed memory aligned to 64 bytes for sizes of 64 and more, else 16; NULL when out of memory.
 * size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);
/* count * size with the overflow checked (NULL then). */
void *arena_array(struct arena *arena, size_t count, size_t size);
/* A terminated copy of n bytes. */
char *arena_copy(struct arena *arena, const char *text, size_t n);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *arena);

#endif
