/* SPDX-License-Identifier: Apache-2.0
 *
 * trie.h: the tokens of a vocabulary by their bytes, as arrays in preorder: a node's first child is
 * the node behind it, and skip[node] is the first one that is not below it. So a walk is a loop,
 * and whole subtrees are ranges, of nodes as of tokens. Control tokens (without bytes) and tokens
 * that end generation are not in it. Immutable, thread safe. */
#ifndef SAMPLE_GRAMMAR_TRIE_H
#define SAMPLE_GRAMMAR_TRIE_H

#include "sample/grammar/automaton.h"

/* Bytes are told apart in 64 groups where sets of the bytes below a node are kept: those that
 * texts of formal languages end at are alone in theirs. */
extern const uint8_t trie_group[256];

struct trie {
    uint8_t *byte;     /* [n] */
    uint32_t *skip;    /* [n] */
    uint32_t *first;   /* [n + 1]: of `token`: those that end at the node, then those below it */
    uint64_t *below;   /* [n]: groups of the bytes of the nodes below */
    int32_t *token;    /* [token_n], in the order of their bytes */
    uint32_t n, token_n, depth;
};

/* piece [size]: the tokens' bytes, empty ones are left out. OB_ERR_MEMORY, or OB_ERR_LIMIT: more
 * than 2^30 bytes. */
ob_status trie_make(const struct str *piece, uint32_t size, struct trie *out, ob_error *error);
void trie_free(struct trie *t);

/* A walk's place in the tree: the nodes above the one it is at, with a number for each. */
struct trie_level { uint32_t end, value; };

#endif
