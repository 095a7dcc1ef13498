/* SPDX-License-Identifier: Apache-2.0
 *
 * seq.c: a sequence's page tables. Invariant: for each group, pages [first, end) are held, and
 * cover every position below `length` that a later position can see. */
#include <stdlib.h>

#include "engine/internal.h"

static uint32_t pages_for(uint32_t positions) {
    return (positions + PAGE_TOKENS - 1) / PAGE_TOKENS;
}

/* First page a query at position `at` sees in this group. */
static uint32_t first_seen(const struct cache_group *g, uint32_t at) {
    if (g->kind != CACHE_WINDOW || at + 1 <= g->window) return 0;
    return (at + 1 - g->window) / PAGE_TOKENS;
}

struct seq *seq_new(struct engine *engine) {
    struct seq *seq = calloc(1, sizeof *seq);
    if (!seq) return NULL;
    uint32_t groups = engine->groups;
    seq->engine = engine;
    seq->page_slots = pages_for(engine->context);
    seq->page = calloc(groups + 1, sizeof *seq->page);
    seq->first = calloc(groups + 1, sizeof *seq->first);
    seq->end = calloc(groups + 1, sizeof *seq->end);
    bool ok = seq->page && seq->first && seq->end;
    for (uint32_t g = 0; ok && g < groups; g++) {
        seq->page[g] = malloc(seq->page_slots * sizeof **seq->page);
        ok = seq->page[g] != NULL;
        for (uint32_t i = 0; ok && i < seq->page_slots; i++) seq->page[g][i] = NO_PAGE;
    }
    if (!ok) seq_free(&seq);
    return seq;
}

static void give(struct seq *seq, uint32_t g, uint32_t i) {
    pages_give(&seq->engine->group[g].pages, seq->page[g][i]);
    seq->page[g][i] = NO_PAGE;
}

void seq_free(struct seq **p) {
    struct seq *seq = *p;
    if (!seq) return;
    for (uint32_t g = 0; seq->page && g < seq->engine->groups; g++) {
        for (uint32_t i = seq->page[g] ? seq->first[g] : 0; seq->page[g] && i < seq->end[g]; i++)
            give(seq, g, i);
        free(seq->page[g]);
    }
    free(seq->page);
    free(seq->first);
    free(seq->end);
    free(seq);
    *p = NULL;
}

uint32_t seq_length(const struct seq *seq) { return seq->length; }

uint32_t seq_needs(const struct seq *seq, uint32_t g, uint32_t n) {
    uint32_t want = pages_for(seq->length + n);
    return want > seq->end[g] ? want - seq->end[g] : 0;
}

bool seq_grow(struct seq *seq, uint32_t n) {
    struct engine *e = seq->engine;
    for (uint32_t g = 0; g < e->groups; g++)
        if (seq_needs(seq, g, n) > e->group[g].pages.free_count) return false;
    for (uint32_t g = 0; g < e->groups; g++)
        for (uint32_t more = seq_needs(seq, g, n); more; more--)
            seq->page[g][seq->end[g]++] = pages_take(&e->group[g].pages);
    return true;
}

void seq_leave_window(struct seq *seq) {
    const struct graph *graph = &seq->engine->model->graph;
    for (uint32_t g = 0; g < seq->engine->groups; g++) {
        uint32_t keep = first_seen(&graph->group[g], seq->length);
        if (keep > seq->end[g]) keep = seq->end[g];
        for (; seq->first[g] < keep; seq->first[g]++) give(seq, g, seq->first[g]);
    }
}

bool seq_truncate(struct seq *seq, uint32_t n) {
    const struct graph *graph = &seq->engine->model->graph;
    bool whole = true;
    if (n >= seq->length) return true;
    for (uint32_t g = 0; g < seq->engine->groups; g++)
        if (n > 0 && first_seen(&graph->group[g], n) < seq->first[g]) whole = false;
    if (!whole) n = 0;
    for (uint32_t g = 0; g < seq->engine->groups; g++) {
        uint32_t keep = pages_for(n);
        while (seq->end[g] > keep && seq->end[g] > seq->first[g]) give(seq, g, --seq->end[g]);
        if (n == 0) seq->first[g] = seq->end[g] = 0;
    }
    seq->length = n;
    return whole;
}
