/* SPDX-License-Identifier: Apache-2.0
 *
 * vocab.h: what a vocabulary keeps for grammars: its tree, and the records made so far. Records are
 * found by what a rule looks like (`shape`), not by whose it is, so that the strings and numbers of
 * all JSON grammars share theirs; the least recently used go when there are too many. One lock;
 * records are made outside of it. */
#ifndef SAMPLE_GRAMMAR_VOCAB_H
#define SAMPLE_GRAMMAR_VOCAB_H

#include "base/buf.h"
#include "base/os.h"
#include "sample/grammar/record.h"

enum {
    VOCAB_CACHE_BYTES = 64 << 20,
    VOCAB_SHAPE_WORDS = 4096, /* larger rules are told apart by their grammar */
    VOCAB_SHAPES = 4096,      /* shapes known by looks; later ones likewise */
    VOCAB_HEADS = 4096,
};

/* A grammar's rules as the vocabulary knows them, while states of it are open. */
struct binding {
    struct binding *next;
    const struct grammar *g;
    uint32_t users;
    uint64_t *shape; /* [rule_n]; 0: not asked for yet */
};

struct shape { uint32_t *word, n, next; };

struct grammar_vocab {
    uint32_t size;
    struct trie trie;
    char *bytes;        /* of all tokens */
    struct str *piece;  /* [size]; empty: control tokens */
    uint32_t *ends;     /* [words]: tokens that end generation */
    os_mutex lock;      /* of all below */
    struct binding *bindings;
    struct scratch *idle;
    struct shape *shape;
    uint32_t shape_n, shape_cap, shape_head[VOCAB_HEADS];
    struct record *head[VOCAB_HEADS], *newest, *oldest;
    size_t bytes_kept;
};

static inline bool vocab_ends(const struct grammar_vocab *v, int32_t id) {
    return v->ends[(uint32_t)id / 32] >> ((uint32_t)id % 32) & 1;
}
/* NULL: out of memory. */
struct binding *vocab_bind(struct grammar_vocab *v, const struct grammar *g);
void vocab_unbind(struct grammar_vocab *v, struct binding **binding);
struct scratch *vocab_scratch(struct grammar_vocab *v);
void vocab_give_back(struct grammar_vocab *v, struct scratch *s);
/* The record of a place, found or made; hold it until vocab_release. `frame`: what its node's rule
 * runs in. */
ob_status vocab_record(struct grammar_vocab *v, struct binding *binding, struct scratch *s,
                       struct frame frame, uint32_t node, struct record **out, ob_error *error);
void vocab_release(struct grammar_vocab *v, struct record **record);

/* shape.c: the rule and all that it calls as words, equal for rules that look alike; false: more
 * than VOCAB_SHAPE_WORDS, or out of memory. */
bool shape_write(const struct grammar *g, uint32_t rule, uint32_t **word, uint32_t *n);

#endif
