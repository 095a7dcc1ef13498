/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h: what is known of a place in a grammar without its stack: which tokens stay within the
 * rule, and which end it and go on behind it. A rule means the same wherever it is called from, so
 * that a mask is the record of each place of a state, and, for the second kind, a walk over the few
 * tokens in question with the stack at hand.
 *
 * In the body of a counted repetition a record begins below the repetition's frame, and says with
 * each token how many more repetitions it completes: then one record serves all counts. */
#ifndef SAMPLE_GRAMMAR_RECORD_H
#define SAMPLE_GRAMMAR_RECORD_H

#include "sample/grammar/walk.h"

/* Equal keys of a vocabulary have equal records. */
struct record_key {
    uint64_t shape; /* of the rule, or of the rule that repeats; vocab.h */
    uint32_t call;  /* the repetition, counted from its rule's first call, + 1; 0: none */
    uint32_t node;  /* counted from its rule's start */
};

struct record_item { uint32_t what, count; }; /* a token or a node of the tree; repetitions */
struct record_group { uint8_t byte; uint32_t end; }; /* items up to `end` */

struct record {
    struct record_key key;
    struct record *hash_next, *newer, *older;
    size_t size;
    uint32_t users;
    bool cached;
    /* Tokens that stay within the rule: as a set or, if they are few, a list. */
    uint32_t *bits, *id, id_n;
    /* Counted: the same tokens with the repetitions that they complete, most first; those that
     * complete as many and then go on behind the repetition, but in its rule. */
    struct record_item *within, *beyond;
    uint32_t within_n, beyond_n;
    /* Nodes of the tree before which the rule had ended, grouped by their byte. */
    struct record_item *leave;
    struct record_group *group;
    uint32_t leave_n, group_n;
};

/* Memory for the making of records and masks; used by one thread at a time. */
struct scratch {
    struct scratch *next; /* of a list of those not in use */
    struct runner run;
    struct walk walk;
    struct places place;
    uint32_t *bits; /* [words of a mask] */
    struct record_item *within, *sorted, *beyond, *leave;
    uint32_t *outcome;  /* of the walk's states: record.c */
    uint32_t within_n, within_cap, sorted_cap, beyond_n, beyond_cap, leave_n, leave_cap,
        outcome_cap;
};
void scratch_free(struct scratch **s);

struct record_place {
    const struct grammar *g;
    const struct trie *trie;
    const uint32_t *ends; /* tokens that end generation, as a mask */
    uint32_t size;        /* of the vocabulary */
    bool counted;
    uint32_t call, node; /* the repetition; where the text stands */
};
/* OB_ERR_MEMORY; OB_ERR_LIMIT: the grammar is too ambiguous. */
ob_status record_make(const struct record_place *at, struct scratch *s, struct record **out,
                      ob_error *error);
void record_free(struct record **record);

#endif
