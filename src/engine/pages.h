/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.h: which pages of a cache group's KV buffer are in use, and by how many sequences. A page
 * holds 64 positions in all layers of the group; sequences that begin alike share the pages of that
 * beginning, and who wants to write into a shared one copies it first (seq.c). Pages are handed out
 * lowest first, so that memory which was never needed is never touched. */
#ifndef ENGINE_PAGES_H
#define ENGINE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct pages {
    uint32_t *free;  /* stack of free page numbers */
    uint32_t *users; /* [count] sequences that hold it */
    uint32_t count, free_count;
};

bool pages_init(struct pages *pages, uint32_t count);
void pages_close(struct pages *pages);
/* NO_PAGE when none is left. */
uint32_t pages_take(struct pages *pages);
/* One more user of a page that is in use. */
void pages_share(struct pages *pages, uint32_t page);
bool pages_is_shared(const struct pages *pages, uint32_t page);
/* One user less; without any it is free. */
void pages_give(struct pages *pages, uint32_t page);

#endif
