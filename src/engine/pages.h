/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.h: which pages of a cache group's KV buffer are in use. A page holds 64 positions of one
 * sequence in all layers of the group. Pages are handed out lowest first, so that memory which was
 * never needed is never touched. */
#ifndef ENGINE_PAGES_H
#define ENGINE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct pages {
    uint32_t *free; /* stack of free page numbers */
    uint32_t count, free_count;
};

bool pages_init(struct pages *pages, uint32_t count);
void pages_close(struct pages *pages);
/* NO_PAGE when none is left. */
uint32_t pages_take(struct pages *pages);
void pages_give(struct pages *pages, uint32_t page);

#endif
