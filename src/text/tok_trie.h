/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_trie.h: a trie of byte strings, for all tokens that begin at a place of a text. Built once,
 * then immutable. The children of a node are neighbours, sorted by byte. */
#ifndef TEXT_TOK_TRIE_H
#define TEXT_TOK_TRIE_H

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"

struct trie_node {
    uint32_t child;  /* the first one */
    int32_t id;      /* of the token that ends here; -1: none */
    uint16_t n;      /* children */
    unsigned char byte;
};

struct trie {
    struct trie_node *node; /* node 0 is the root */
    uint32_t root[256];     /* its children by byte; 0: none */
};

struct trie_entry {
    struct str text; /* not empty */
    int32_t id;
};

/* Sorts the entries; of equal texts the one with the highest id counts. */
ob_status trie_build(struct trie *trie, struct trie_entry *entry, size_t n, struct arena *arena,
                     ob_error *error);

/* The child of a node for a byte; 0: none. */
static inline uint32_t trie_child(const struct trie *trie, uint32_t node, unsigned char byte) {
    if (node == 0) return trie->root[byte];
    const struct trie_node *at = &trie->node[node];
    uint32_t low = at->child, high = low + at->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (trie->node[mid].byte < byte) low = mid + 1;
        else high = mid;
    }
    return low < at->child + at->n && trie->node[low].byte == byte ? low : 0;
}

#endif
