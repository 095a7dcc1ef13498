/* SPDX-License-Identifier: Apache-2.0
 * trie.c: the tree of a vocabulary's bytes; see trie.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/trie.h"

/* 0 to 3: control characters, tab, line feed, carriage return; then the printable ASCII that is
 * not alphanumeric, one each; digits; letters to f; others; the kinds of UTF-8's bytes. */
#define ROW4(a) a, a, a, a
#define ROW16(a) ROW4(a), ROW4(a), ROW4(a), ROW4(a)
enum { DIGIT = 37, UPPER_F, UPPER, LOWER_F, LOWER, TAIL_LOW, TAIL_MID, TAIL_HIGH, LEAD2, E0, LEAD3,
       ED, F0, LEAD4, F4, NEVER };
const uint8_t trie_group[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 0, 0, ROW16(0),
    4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
    DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, 20, 21, 22, 23, 24, 25,
    26, UPPER_F, UPPER_F, UPPER_F, UPPER_F, UPPER_F, UPPER_F, UPPER, ROW4(UPPER), ROW4(UPPER),
    ROW4(UPPER), ROW4(UPPER), UPPER, UPPER, UPPER, 27, 28, 29, 30, 31,
    32, LOWER_F, LOWER_F, LOWER_F, LOWER_F, LOWER_F, LOWER_F, LOWER, ROW4(LOWER), ROW4(LOWER),
    ROW4(LOWER), ROW4(LOWER), LOWER, LOWER, LOWER, 33, 34, 35, 36, 0,
    ROW16(TAIL_LOW), ROW16(TAIL_MID), ROW16(TAIL_HIGH), ROW16(TAIL_HIGH),
    NEVER, NEVER, LEAD2, LEAD2, ROW4(LEAD2), ROW4(LEAD2), ROW4(LEAD2), ROW16(LEAD2),
    E0, LEAD3, LEAD3, LEAD3, ROW4(LEAD3), ROW4(LEAD3), LEAD3, ED, LEAD3, LEAD3,
    F0, LEAD4, LEAD4, LEAD4, F4, NEVER, NEVER, NEVER, ROW4(NEVER), ROW4(NEVER),
};

struct entry { const char *p; uint32_t n; int32_t id; };

static int by_bytes(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int order = str_order((struct str){x->p, x->n}, (struct str){y->p, y->n});
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static size_t shared(const struct entry *a, const struct entry *b) {
    size_t n = a->n < b->n ? a->n : b->n, k = 0;
    while (k < n && a->p[k] == b->p[k]) k++;
    return k;
}

void trie_free(struct trie *t) {
    free(t->byte);
    free(t->skip);
    free(t->first);
    free(t->below);
    free(t->token);
    *t = (struct trie){0};
}

/* The nodes of sorted entries; `open`: those on the way to the last one [depth]. */
static void fill(struct trie *t, const struct entry *entry, uint32_t *open) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < t->token_n; i++) {
        size_t common = i ? shared(&entry[i - 1], &entry[i]) : 0;
        while (depth > common) t->skip[open[--depth]] = t->n;
        while (depth < entry[i].n) {
            open[depth] = t->n;
            t->byte[t->n] = (uint8_t)entry[i].p[depth++];
            t->first[t->n++] = i;
        }
        t->token[i] = entry[i].id;
    }
    while (depth) t->skip[open[--depth]] = t->n;
    t->first[t->n] = t->token_n;
    /* Children come behind their parents, so from the last node each is complete when met. */
    for (uint32_t i = t->n; i-- > 0;) {
        t->below[i] = 0;
        for (uint32_t c = i + 1; c < t->skip[i]; c = t->skip[c])
            t->below[i] |= t->below[c] | 1ull << trie_group[t->byte[c]];
    }
}

ob_status trie_make(const struct str *piece, uint32_t size, struct trie *out, ob_error *error) {
    struct entry *entry = calloc(size + (size_t)1, sizeof *entry);
    size_t nodes = 0;
    *out = (struct trie){0};
    if (!entry) return error_memory(error, "a vocabulary's tree", size * sizeof *entry);
    for (uint32_t i = 0; i < size; i++) {
        if (!piece[i].n) continue;
        if (piece[i].n > (1u << 30) - nodes) {
            free(entry);
            return error_set(error, OB_ERR_LIMIT, "a vocabulary of more than 1 GiB of text");
        }
        nodes += piece[i].n;
        if (piece[i].n > out->depth) out->depth = (uint32_t)piece[i].n;
        entry[out->token_n++] = (struct entry){piece[i].p, (uint32_t)piece[i].n, (int32_t)i};
    }
    if (out->token_n) qsort(entry, out->token_n, sizeof *entry, by_bytes);
    size_t distinct = 0;
    for (uint32_t i = 0; i < out->token_n; i++)
        distinct += entry[i].n - (i ? shared(&entry[i - 1], &entry[i]) : 0);
    uint32_t *open = calloc(out->depth + (size_t)1, sizeof *open);
    out->byte = malloc(distinct + 1);
    out->skip = calloc(distinct + 1, sizeof *out->skip);
    out->first = calloc(distinct + 1, sizeof *out->first);
    out->below = calloc(distinct + 1, sizeof *out->below);
    out->token = calloc(out->token_n + (size_t)1, sizeof *out->token);
    bool room = open && out->byte && out->skip && out->first && out->below && out->token;
    if (room) fill(out, entry, open);
    else trie_free(out);
    free(entry);
    free(open);
    return room ? OB_OK : error_memory(error, "a vocabulary's tree", distinct * 17);
}
