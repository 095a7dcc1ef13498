/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_merge.h: the merging of BPE and of SentencePiece's BPE: neighbours that make a token are
 * joined, best rank first, leftmost among equals, until none is left. A heap of candidates over a
 * linked list of symbols: O(n log n) whatever the text. */
#ifndef TEXT_TOK_MERGE_H
#define TEXT_TOK_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_symbol {
    int32_t id;          /* token; -1 a character that is none */
    uint32_t at, n;      /* its bytes in the text; n = 0: joined to an earlier symbol */
    uint32_t prev, next; /* MERGE_END at the ends */
};
#define MERGE_END UINT32_MAX

struct merge_rule {
    uint32_t rank; /* lower is earlier */
    int32_t id;    /* what the pair becomes */
};

struct merge_candidate;

/* Scratch memory of one encoding, reused from word to word. */
struct merge {
    struct merge_symbol *symbol;
    size_t n, cap;
    struct merge_candidate *heap;
    size_t heap_n, heap_cap;
};

/* Appends a symbol; false when out of memory. To start a word set n = 0. */
bool merge_push(struct merge *merge, int32_t id, size_t at, size_t n);
/* Joins until nothing can be joined; false when out of memory. What is left: the symbols from 0
 * along `next`. */
bool merge_run(struct merge *merge,
               bool (*find)(const void *ctx, const struct merge_symbol *left,
                            const struct merge_symbol *right, struct merge_rule *rule),
               const void *ctx);
void merge_free(struct merge *merge);

#endif
