/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_merge.c: see tok_merge.h. A candidate is not removed when one of its symbols changes: it is
 * stale when its left symbol is gone or the two no longer span the bytes they did, and is dropped
 * when it comes up. Each join adds at most two candidates, so the heap sees at most 3n. It has four
 * children a node: one cache line or two a level instead of one a binary level. */
#include "text/tok_merge.h"

#include <stdlib.h>

struct merge_candidate {
    uint64_t key; /* rank, then position of the left symbol */
    uint32_t n;   /* bytes of both symbols */
    int32_t id;
};

static bool reserve(void **p, size_t *cap, size_t n, size_t size) {
    if (n < *cap) return true;
    size_t more = *cap ? *cap * 2 : 64;
    void *q = realloc(*p, more * size);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

bool merge_push(struct merge *m, int32_t id, size_t at, size_t n) {
    if (!reserve((void **)&m->symbol, &m->cap, m->n, sizeof *m->symbol)) return false;
    uint32_t i = (uint32_t)m->n++;
    m->symbol[i] = (struct merge_symbol){.id = id,
                                         .at = (uint32_t)at,
                                         .n = (uint32_t)n,
                                         .prev = i ? i - 1 : MERGE_END,
                                         .next = MERGE_END};
    if (i) m->symbol[i - 1].next = i;
    return true;
}

static bool heap_put(struct merge *m, struct merge_candidate c) {
    if (!reserve((void **)&m->heap, &m->heap_cap, m->heap_n, sizeof *m->heap)) return false;
    size_t i = m->heap_n++;
    for (size_t up; i && c.key < m->heap[up = (i - 1) / 4].key; i = up) m->heap[i] = m->heap[up];
    m->heap[i] = c;
    return true;
}

static struct merge_candidate heap_take(struct merge *m) {
    struct merge_candidate top = m->heap[0], last = m->heap[--m->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 4 * i + 1, down = child;
        if (child >= m->heap_n) break;
        for (size_t k = child + 1; k < child + 4 && k < m->heap_n; k++)
            if (m->heap[k].key < m->heap[down].key) down = k;
        if (last.key <= m->heap[down].key) break;
        m->heap[i] = m->heap[down];
        i = down;
    }
    m->heap[i] = last;
    return top;
}

bool merge_run(struct merge *m,
               bool (*find)(const void *ctx, const struct merge_symbol *left,
                            const struct merge_symbol *right, struct merge_rule *rule),
               const void *ctx) {
    struct merge_symbol *s = m->symbol;
    struct merge_rule rule;
    m->heap_n = 0;
    for (uint32_t i = 0; i + 1 < m->n; i++)
        if (find(ctx, &s[i], &s[i + 1], &rule) &&
            !heap_put(m, (struct merge_candidate){(uint64_t)rule.rank << 32 | i,
                                                  s[i].n + s[i + 1].n, rule.id}))
            return false;
    while (m->heap_n) {
        struct merge_candidate c = heap_take(m);
        uint32_t i = (uint32_t)c.key, right = s[i].next;
        if (s[i].n == 0 || right == MERGE_END || s[i].n + s[right].n != c.n) continue;
        s[i].id = c.id;
        s[i].n = c.n;
        s[i].next = s[right].next;
        s[right].n = 0;
        if (s[i].next != MERGE_END) s[s[i].next].prev = i;
        uint32_t pair[2] = {s[i].prev, i}; /* left ends of the two new neighbourhoods */
        for (int k = 0; k < 2; k++) {
            uint32_t l = pair[k], r = l == MERGE_END ? MERGE_END : s[l].next;
            if (r == MERGE_END || !find(ctx, &s[l], &s[r], &rule)) continue;
            if (!heap_put(m, (struct merge_candidate){(uint64_t)rule.rank << 32 | l,
                                                      s[l].n + s[r].n, rule.id}))
                return false;
        }
    }
    return true;
}

void merge_free(struct merge *m) {
    free(m->symbol);
    free(m->heap);
    *m = (struct merge){0};
}
