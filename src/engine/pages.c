/* SPDX-License-Identifier: Apache-2.0
 * pages.c: see pages.h. */
#include "engine/pages.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/graph.h"

bool pages_init(struct pages *pages, uint32_t count) {
    *pages = (struct pages){.free = malloc((count ? count : 1) * sizeof *pages->free),
                            .count = count,
                            .free_count = count};
    if (!pages->free) return false;
    for (uint32_t i = 0; i < count; i++) pages->free[i] = count - 1 - i;
    return true;
}

void pages_close(struct pages *pages) {
    free(pages->free);
    *pages = (struct pages){0};
}

uint32_t pages_take(struct pages *pages) {
    return pages->free_count ? pages->free[--pages->free_count] : NO_PAGE;
}

void pages_give(struct pages *pages, uint32_t page) {
    assert(page < pages->count && pages->free_count < pages->count);
    pages->free[pages->free_count++] = page;
}
