/* SPDX-License-Identifier: Apache-2.0
 * pages.c: see pages.h. */
#include "engine/pages.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/graph.h"

bool pages_init(struct pages *pages, uint32_t count) {
    *pages = (struct pages){.free = malloc((count ? count : 1) * sizeof *pages->free),
                            .users = calloc(count ? count : 1, sizeof *pages->users),
                            .count = count,
                            .free_count = count};
    if (!pages->free || !pages->users) {
        pages_close(pages);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) pages->free[i] = count - 1 - i;
    return true;
}

void pages_close(struct pages *pages) {
    free(pages->free);
    free(pages->users);
    *pages = (struct pages){0};
}

uint32_t pages_take(struct pages *pages) {
    if (pages->free_count == 0) return NO_PAGE;
    uint32_t page = pages->free[--pages->free_count];
    pages->users[page] = 1;
    return page;
}

void pages_share(struct pages *pages, uint32_t page) {
    assert(page < pages->count && pages->users[page] > 0);
    pages->users[page]++;
}

bool pages_is_shared(const struct pages *pages, uint32_t page) { return pages->users[page] > 1; }

void pages_give(struct pages *pages, uint32_t page) {
    assert(page < pages->count && pages->users[page] > 0);
    if (--pages->users[page] == 0) pages->free[pages->free_count++] = page;
}
