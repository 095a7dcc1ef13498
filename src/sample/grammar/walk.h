/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.h: goes through the vocabulary's tree with a runner. Sets of places that come up are kept as
 * numbered states with a row of where each byte leads (an automaton made while it runs), so that a
 * step that was made before is one load, however many stacks the set holds. */
#ifndef SAMPLE_GRAMMAR_WALK_H
#define SAMPLE_GRAMMAR_WALK_H

#include "sample/grammar/runner.h"
#include "sample/grammar/trie.h"

enum {
    WALK_UNKNOWN = 0, WALK_DEAD = 1, /* of rows; states begin at 2 */
    WALK_MAX_STATES = 1 << 14,
    WALK_BULK_AFTER = 48, /* visits after which it is found out what bytes a state stays at */
};

struct walk_state {
    uint32_t first, n; /* of `place` */
    uint32_t next;     /* in its hash chain */
    uint32_t left, left_n; /* of `left`; known once a step was made */
    uint32_t visits;
    uint64_t stays;    /* groups of bytes, each of which leads back to this state */
    bool stepped;
};

struct walk {
    struct runner *run; /* borrowed */
    struct walk_state *state; /* [0], [1] unused */
    uint16_t (*row)[256];
    struct place *place;
    uint32_t *left;     /* counts of frames (FRAME_BASE) that the states' places may leave */
    struct places out;
    struct trie_level *level; /* [trie depth + 1]; owner's */
    uint32_t state_n, state_cap, row_cap, place_n, place_cap, left_n, left_cap, level_cap;
    uint32_t head[1024];
    bool start_stays; /* state 2, the first, does not leave its rule before the first byte */
};

void walk_free(struct walk *w);
/* Forgets all states; the first one becomes the places, which no step leads to. */
uint32_t walk_begin(struct walk *w, struct runner *run, const struct place *place, uint32_t n,
                    bool start_stays, const struct trie *trie);
/* Makes a step that the row does not have; state or WALK_DEAD; that too if the runner failed. */
uint16_t walk_step(struct walk *w, uint32_t state, uint8_t byte);
/* Counts a visit; finds `stays` out when there were many. */
void walk_visit(struct walk *w, uint32_t state);

static inline uint16_t walk_next(struct walk *w, uint32_t state, uint8_t byte) {
    uint16_t to = w->row[state][byte];
    return to != WALK_UNKNOWN ? to : walk_step(w, state, byte);
}

#endif
