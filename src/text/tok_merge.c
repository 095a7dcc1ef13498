/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_merge.c: see tok_merge.h. A candidate is a cell and a rank. It is not removed when its
 * symbols change: it is stale when its cell no longer has that rank, and is dropped when it comes
 * up. Each join makes at most two, so there are at most 3n.
 *
 * A short word keeps its candidates in a heap. In a long one that would be a dozen cache misses a
 * candidate, so there each rank has a bucket, opened in order of rank: its cells are sorted (they
 * come as few ascending runs, since each sweep over a bucket adds from left to right) and worked
 * off. What has a rank already opened goes to the heap, which comes first. */
#include "text/tok_merge.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONG = 512,  /* symbols; below, buckets cost more than the heap */
    BLOCK = 14,
    MEMO_BITS = 14,
    MEMO_AFTER = 4096, /* symbols: before, making the table costs more than it saves */
    AHEAD = 16,  /* cells fetched before they are needed: halves the time of a megabyte */
};

/* Part of a bucket, a cache line; a list of single cells would be a cache miss each. */
struct merge_block {
    uint32_t next, n; /* next: the block filled before, index + 1; 0 at the end */
    uint32_t cell[BLOCK];
};

static bool reserve(void **p, size_t *cap, size_t n, size_t size) {
    if (n < *cap) return true;
    size_t more = *cap ? *cap * 2 : 64;
    while (more <= n) more *= 2;
    void *q = realloc(*p, more * size);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

bool merge_push(struct merge *m, int32_t id, size_t at, size_t n) {
    if (!reserve((void **)&m->cell, &m->cell_cap, m->n, sizeof *m->cell) ||
        !reserve((void **)&m->at, &m->at_cap, m->n + 1, sizeof *m->at))
        return false;
    m->cell[m->n] = (struct merge_cell){.id = id, .span = 1, .rank = MERGE_NONE};
    m->at[m->n++] = (uint32_t)at;
    m->at[m->n] = (uint32_t)(at + n);
    return true;
}

/* ---- heap: keys are rank and cell; four children a node, which share a cache line ---- */

static bool heap_put(struct merge *m, uint64_t key) {
    if (!reserve((void **)&m->heap, &m->heap_cap, m->heap_n, sizeof *m->heap)) return false;
    size_t i = m->heap_n++;
    for (size_t up; i && key < m->heap[up = (i - 1) / 4]; i = up) m->heap[i] = m->heap[up];
    m->heap[i] = key;
    return true;
}

static uint64_t heap_take(struct merge *m) {
    uint64_t top = m->heap[0], last = m->heap[--m->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 4 * i + 1, down = child;
        if (child >= m->heap_n) break;
        for (size_t k = child + 1; k < child + 4 && k < m->heap_n; k++)
            if (m->heap[k] < m->heap[down]) down = k;
        if (last <= m->heap[down]) break;
        m->heap[i] = m->heap[down];
        i = down;
    }
    m->heap[i] = last;
    return top;
}

/* ---- buckets ---- */

static bool bucket_put(struct merge *m, uint32_t rank, uint32_t cell) {
    uint32_t last = m->bucket[rank];
    if (last == 0 || m->block[last - 1].n == BLOCK) {
        if (!reserve((void **)&m->block, &m->block_cap, m->block_n, sizeof *m->block)) return false;
        m->block[m->block_n].next = last;
        m->block[m->block_n].n = 0;
        last = m->bucket[rank] = (uint32_t)++m->block_n;
        m->filled[rank / 64] |= (uint64_t)1 << rank % 64;
    }
    struct merge_block *block = &m->block[last - 1];
    block->cell[block->n++] = cell;
    return true;
}

/* The end of the ascending run that starts at i. */
static size_t run_end(const uint32_t *p, size_t i, size_t n) {
    for (i++; i < n && p[i - 1] <= p[i];) i++;
    return i;
}

/* Sorts m->open by merging its ascending runs two by two. */
static bool sort_open(struct merge *m) {
    size_t n = m->open_n;
    if (run_end(m->open, 0, n) == n) return true;
    if (!reserve((void **)&m->spare, &m->spare_cap, n, sizeof *m->spare)) return false;
    do {
        for (size_t a = 0, b, end; a < n; a = end) {
            b = run_end(m->open, a, n);
            end = b < n ? run_end(m->open, b, n) : n;
            size_t i = a, k = b;
            for (size_t to = a; to < end; to++) {
                bool left = k == end || (i < b && m->open[i] <= m->open[k]);
                m->spare[to] = m->open[left ? i++ : k++];
            }
        }
        uint32_t *p = m->open;
        m->open = m->spare;
        m->spare = p;
        size_t cap = m->open_cap;
        m->open_cap = m->spare_cap;
        m->spare_cap = cap;
    } while (run_end(m->open, 0, n) < n);
    return true;
}

/* Opens the next bucket that has candidates: *more tells if there is one. */
static bool open_bucket(struct merge *m, uint32_t ranks, bool *more) {
    uint32_t word = m->limit / 64, words = (ranks + 63) / 64;
    while (word < words && !m->filled[word]) word++;
    *more = word < words;
    if (!*more) return true;
    uint32_t bit = (uint32_t)__builtin_ctzll(m->filled[word]), rank = word * 64 + bit;
    m->filled[word] &= m->filled[word] - 1;
    m->open_at = m->open_n = 0;
    for (uint32_t i = m->bucket[rank]; i; i = m->block[i - 1].next) m->open_n += m->block[i - 1].n;
    if (!reserve((void **)&m->open, &m->open_cap, m->open_n, sizeof *m->open)) return false;
    size_t end = m->open_n; /* the last filled comes first */
    for (uint32_t i = m->bucket[rank]; i; i = m->block[i - 1].next) {
        const struct merge_block *block = &m->block[i - 1];
        end -= block->n;
        memcpy(m->open + end, block->cell, block->n * sizeof *m->open);
    }
    m->bucket[rank] = 0;
    m->limit = rank + 1;
    return sort_open(m);
}

/* Empty buckets for a long word. They are emptied as they are opened, but for a word that ended for
 * want of memory, after which there is none. */
static bool buckets_init(struct merge *m, uint32_t ranks) {
    if (!m->bucket) m->bucket = calloc((size_t)ranks + 1, sizeof *m->bucket);
    if (!m->filled) m->filled = calloc((size_t)ranks / 64 + 1, sizeof *m->filled);
    m->block_n = 0;
    return m->bucket && m->filled;
}

/* ---- rules met before: a table that fits the cache beside one of megabytes ---- */

struct merge_memo {
    uint32_t left, right; /* tokens + 1; 0: free */
    struct merge_rule rule; /* rank MERGE_NONE: there is none */
};

static struct merge_memo *memo_of(const struct merge *m, uint32_t left, uint32_t right) {
    uint32_t hash = left * 0x9e3779b1u ^ right * 0x85ebca77u;
    return &m->memo[hash * 0xc2b2ae3du >> (32 - MEMO_BITS)];
}

/* ---- joining ---- */

struct job {
    struct merge *m;
    merge_find *find;
    const void *ctx;
};

static struct merge_rule rule_of(const struct job *job, uint32_t left, uint32_t right) {
    const struct merge *m = job->m;
    struct merge_rule rule;
    int32_t a = m->cell[left].id, b = m->cell[right].id;
    bool known = m->memo && a >= 0 && b >= 0;
    struct merge_memo *memo = known ? memo_of(m, (uint32_t)a, (uint32_t)b) : NULL;
    if (known && memo->left == (uint32_t)a + 1 && memo->right == (uint32_t)b + 1) return memo->rule;
    if (!job->find(job->ctx, m, left, right, &rule)) rule = (struct merge_rule){MERGE_NONE, -1};
    if (known) *memo = (struct merge_memo){(uint32_t)a + 1, (uint32_t)b + 1, rule};
    return rule;
}

/* Looks at the symbol at cell i and its right neighbour. */
static bool offer(const struct job *job, uint32_t i) {
    struct merge *m = job->m;
    struct merge_cell *cell = &m->cell[i];
    uint32_t right = i + cell->span;
    cell->rank = MERGE_NONE;
    if (right >= m->n) return true;
    struct merge_rule rule = rule_of(job, i, right);
    if (rule.rank == MERGE_NONE) return true;
    cell->rank = rule.rank;
    cell->joined = rule.id;
    if (rule.rank < m->limit) return heap_put(m, (uint64_t)rule.rank << 32 | i);
    return bucket_put(m, rule.rank, i);
}

static bool join(const struct job *job, uint32_t i) {
    struct merge_cell *cell = job->m->cell;
    uint32_t right = i + cell[i].span, span = cell[i].span + cell[right].span;
    cell[right].rank = MERGE_NONE;
    cell[i].id = cell[i].joined;
    cell[i].span = cell[i + span - 1].span = span;
    return (i == 0 || offer(job, i - cell[i - 1].span)) && offer(job, i);
}

bool merge_run(struct merge *m, uint32_t ranks, merge_find *find, const void *ctx) {
    struct job job = {m, find, ctx};
    bool many = m->n >= LONG;
    if (many && !buckets_init(m, ranks)) return false;
    m->seen += m->n;
    if (!m->memo && m->seen >= MEMO_AFTER && !(m->memo = calloc(1 << MEMO_BITS, sizeof *m->memo)))
        return false;
    m->heap_n = m->open_at = m->open_n = 0;
    m->limit = many ? 0 : MERGE_NONE;
    for (uint32_t i = 0; i + 1 < m->n; i++)
        if (!offer(&job, i)) return false;
    for (;;) {
        uint64_t opened = m->limit - (uint64_t)1;
        uint64_t key;
        if (m->open_at < m->open_n) key = opened << 32 | m->open[m->open_at];
        else key = UINT64_MAX;
        if (m->heap_n && m->heap[0] <= key) key = heap_take(m);
        else if (key != UINT64_MAX) {
            m->open_at++;
            if (m->open_at + AHEAD < m->open_n)
                __builtin_prefetch(&m->cell[m->open[m->open_at + AHEAD]], 1);
        } else if (!many) return true;
        else {
            bool more;
            if (!open_bucket(m, ranks, &more)) return false;
            if (!more) return true;
            continue;
        }
        if (m->cell[(uint32_t)key].rank == key >> 32 && !join(&job, (uint32_t)key)) return false;
    }
}

void merge_free(struct merge *m) {
    free(m->cell);
    free(m->at);
    free(m->heap);
    free(m->bucket);
    free(m->filled);
    free(m->block);
    free(m->open);
    free(m->spare);
    free(m->memo);
    *m = (struct merge){0};
}
