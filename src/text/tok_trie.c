/* SPDX-License-Identifier: Apache-2.0
 * tok_trie.c: see tok_trie.h. Breadth first: a node stands for a range of the sorted entries. */
#include "text/tok_trie.h"

#include <stdlib.h>

#include "base/error.h"

static int by_text(const void *a, const void *b) {
    const struct trie_entry *x = a, *y = b;
    int order = str_order(x->text, y->text);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

struct span { /* entries of a node, which share `depth` bytes */
    uint32_t from, to, depth;
};

static size_t count_nodes(const struct trie_entry *entry, size_t n) {
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        size_t shared = 0;
        while (i && shared < entry[i].text.n && shared < entry[i - 1].text.n &&
               entry[i].text.p[shared] == entry[i - 1].text.p[shared])
            shared++;
        nodes += entry[i].text.n - shared;
    }
    return nodes;
}

/* Makes the children of a node, whose spans are appended after the last node's. */
static void expand(struct trie *trie, struct span *span, const struct trie_entry *entry,
                   uint32_t node, uint32_t *nodes) {
    struct span s = span[node];
    uint32_t i = s.from;
    for (; i < s.to && entry[i].text.n == s.depth; i++) trie->node[node].id = entry[i].id;
    trie->node[node].child = *nodes;
    while (i < s.to) {
        unsigned char byte = (unsigned char)entry[i].text.p[s.depth];
        uint32_t from = i;
        while (i < s.to && (unsigned char)entry[i].text.p[s.depth] == byte) i++;
        span[*nodes] = (struct span){from, i, s.depth + 1};
        trie->node[*nodes].byte = byte;
        trie->node[*nodes].id = -1;
        trie->node[node].n++;
        ++*nodes;
    }
}

ob_status trie_build(struct trie *trie, struct trie_entry *entry, size_t n, struct arena *arena,
                     ob_error *error) {
    if (n) qsort(entry, n, sizeof *entry, by_text);
    size_t total = count_nodes(entry, n);
    if (total >= UINT32_MAX) return error_set(error, OB_ERR_LIMIT, "too many tokens");
    trie->node = arena_array(arena, total, sizeof *trie->node);
    struct span *span = malloc(total * sizeof *span);
    if (!trie->node || !span) {
        free(span);
        return error_memory(error, "trie of tokens", total * sizeof *trie->node);
    }
    uint32_t nodes = 1;
    trie->node[0].id = -1;
    span[0] = (struct span){0, (uint32_t)n, 0};
    for (uint32_t i = 0; i < nodes; i++) expand(trie, span, entry, i, &nodes);
    for (uint32_t i = 0; i < trie->node[0].n; i++)
        trie->root[trie->node[trie->node[0].child + i].byte] = trie->node[0].child + i;
    free(span);
    return OB_OK;
}
