/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_memo.h: the tokens of words met before in one encoding: texts repeat their words. A table
 * without chains, a cache line a word; a word takes the place of the one that was there. Only for
 * models whose tokens of a piece depend on the piece alone. Made when a text turns out to be long
 * enough. */
#ifndef TEXT_TOK_MEMO_H
#define TEXT_TOK_MEMO_H

#include <stdlib.h>

#include "base/str.h"

enum {
    MEMO_TEXT = 26,
    MEMO_IDS = 9,
    MEMO_SLOTS = 1 << 13, /* half a megabyte: stays in the second-level cache */
    MEMO_FROM = 2048,     /* words before it is made */
};

struct memo_word {
    uint8_t n, ids; /* bytes of the text; 0: free */
    char text[MEMO_TEXT];
    int32_t id[MEMO_IDS];
};

struct word_memo {
    struct memo_word *word; /* NULL: not made yet */
    size_t seen;
};

static inline struct memo_word *memo_slot(const struct word_memo *memo, struct str text) {
    const uint64_t k = 0x9fb21c651e98df25u;
    uint64_t h = text.n * k, v = 0;
    for (; text.n >= sizeof v; text.p += sizeof v, text.n -= sizeof v) {
        memcpy(&v, text.p, sizeof v);
        h = (h ^ v) * k;
        h ^= h >> 32;
    }
    v = 0;
    for (size_t i = 0; i < text.n; i++) v = v << 8 | (unsigned char)text.p[i];
    h = (h ^ v) * k;
    return &memo->word[h >> 51]; /* the 13 highest bits */
}

/* The word's tokens, NULL if they are not known. */
static inline const struct memo_word *memo_find(const struct word_memo *memo, struct str text) {
    if (!memo->word || text.n > MEMO_TEXT) return NULL;
    const struct memo_word *word = memo_slot(memo, text);
    return word->n == text.n && memcmp(word->text, text.p, text.n) == 0 ? word : NULL;
}

static inline void memo_put(struct word_memo *memo, struct str text, const int32_t *id, size_t n) {
    if (text.n == 0 || text.n > MEMO_TEXT || n > MEMO_IDS || n == 0) return;
    if (!memo->word) {
        if (++memo->seen < MEMO_FROM) return;
        memo->word = calloc(MEMO_SLOTS, sizeof *memo->word); /* without it, it is slower */
        if (!memo->word) return;
    }
    struct memo_word *word = memo_slot(memo, text);
    word->n = (uint8_t)text.n;
    word->ids = (uint8_t)n;
    memcpy(word->text, text.p, text.n);
    memcpy(word->id, id, n * sizeof *id);
}

static inline void memo_free(struct word_memo *memo) { free(memo->word); }

#endif
