/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_merge.h: the merging of BPE and of SentencePiece's BPE: neighbours that make a token are
 * joined, best rank first, leftmost among equals, until none is left. Linear in the text but for
 * the sorting of what has one rank, and O(n log n) whatever the rules. */
#ifndef TEXT_TOK_MERGE_H
#define TEXT_TOK_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A symbol occupies the cells of the symbols it was made of; what it is stands in its first. */
struct merge_cell {
    int32_t id;    /* token; -1 a character that is none */
    uint32_t span; /* cells; in the symbol's first cell and in its last */
    uint32_t rank; /* of joining with the next symbol; MERGE_NONE: they do not join */
    int32_t joined; /* what they become */
};
#define MERGE_NONE UINT32_MAX

struct merge_rule {
    uint32_t rank; /* lower is earlier */
    int32_t id;    /* what the pair becomes */
};

struct merge;
/* The rule for the symbols that start at cells left and right; false if there is none. Symbols of
 * the same tokens have the same rule. */
typedef bool merge_find(const void *ctx, const struct merge *merge, uint32_t left, uint32_t right,
                        struct merge_rule *rule);

struct merge_block;
struct merge_memo;

/* Scratch memory of one encoding, reused from word to word. */
struct merge {
    struct merge_cell *cell;
    uint32_t *at; /* [n + 1] where in the text each cell starts */
    size_t n, cell_cap, at_cap;
    /* inside tok_merge.c */
    uint64_t *heap;
    size_t heap_n, heap_cap;
    uint32_t *bucket; /* [ranks] */
    uint64_t *filled; /* a bit a bucket */
    struct merge_block *block;
    size_t block_n, block_cap;
    uint32_t *open, *spare;
    size_t open_at, open_n, open_cap, spare_cap;
    uint32_t limit;
    struct merge_memo *memo; /* NULL until many symbols were looked at */
    size_t seen;
};

/* Appends a symbol of the text's bytes [at, at + n); false when out of memory. To start a word set
 * n = 0. */
bool merge_push(struct merge *merge, int32_t id, size_t at, size_t n);
/* Joins until nothing can be joined; false when out of memory. All ranks are below `ranks`, the
 * same number in all calls. What is left: the symbols from cell 0, each `span` further. */
bool merge_run(struct merge *merge, uint32_t ranks, merge_find *find, const void *ctx);
void merge_free(struct merge *merge);

#endif
