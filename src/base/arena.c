/* SPDX-License-Identifier: Apache-2.0
 * arena.c: see arena.h. Blocks double from 64 KiB to 1 MiB; a large request gets its own block. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1 << 16, LARGEST = 1 << 20, HEADER = 64 };

struct arena_block {
    struct arena_block *older;
    size_t size, used; /* bytes after the header */
};

static char *data(struct arena_block *block) { return (char *)block + HEADER; }

static struct arena_block *grow(struct arena *arena, size_t need) {
    size_t size = arena->head ? arena->head->size * 2 : FIRST;
    if (size > LARGEST) size = LARGEST;
    if (size < need) size = need;
    size = (size + 63) & ~(size_t)63;
    struct arena_block *block = aligned_alloc(64, size + HEADER);
    if (!block) return NULL;
    *block = (struct arena_block){.older = arena->head, .size = size};
    return arena->head = block;
}

void *arena_alloc(struct arena *arena, size_t size) {
    if (size > SIZE_MAX / 4) return NULL;
    size_t align = size >= 64 ? 64 : 16;
    struct arena_block *block = arena->head;
    size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || at > block->size || block->size - at < size) {
        block = grow(arena, size);
        if (!block) return NULL;
        at = 0;
    }
    block->used = at + size;
    return memset(data(block) + at, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    return arena_alloc(arena, count * size);
}

char *arena_copy(struct arena *arena, const char *text, size_t n) {
    char *out = arena_alloc(arena, n + 1);
    if (out && n) memcpy(out, text, n);
    return out;
}

char *arena_printf(struct arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) return NULL;
    char *out = arena_alloc(arena, (size_t)n + 1);
    if (!out) return NULL;
    va_start(args, format);
    vsnprintf(out, (size_t)n + 1, format, args);
    va_end(args);
    return out;
}

void arena_free(struct arena *arena) {
    while (arena->head) {
        struct arena_block *block = arena->head;
        arena->head = block->older;
        free(block);
    }
}
