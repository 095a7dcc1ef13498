/* SPDX-License-Identifier: Apache-2.0
 *
 * runner.h: goes on in a grammar. Where a text stands is a set of places (more than one where it
 * can be read in several ways). Calls are entered and left only when the next byte asks for it, so
 * that a set stays small: from a place one reaches the starts of the rules called there, and, if
 * its rule may end there, what comes behind the call (`places beside it`). Not thread safe. */
#ifndef SAMPLE_GRAMMAR_RUNNER_H
#define SAMPLE_GRAMMAR_RUNNER_H

#include "sample/grammar/automaton.h"
#include "sample/grammar/stacks.h"

enum {
    RUNNER_MAX_PLACES = 4096, /* of a set */
    RUNNER_MAX_STEPS = 1 << 24, /* places gone through for a mask */
};

/* A set: no place twice. */
struct places {
    struct place *p;
    uint32_t n, cap;
    uint64_t *slot; /* hash table of large ones: generation << 32 | index */
    uint32_t slots, generation;
};

struct runner {
    const struct grammar *g;
    struct stacks stacks;
    struct places work;   /* the last set with the places beside it */
    uint64_t steps;       /* left until OB_ERR_LIMIT */
    ob_status status;     /* OB_ERR_MEMORY or OB_ERR_LIMIT: everything since says nothing */
    const char *why;
    bool stays;           /* a step does not leave rules at their ends */
    bool bottom;          /* the whole text may end there: found by runner_beside */
    struct places left;   /* frames whose base was left there: {frame, 0} */
};

bool runner_init(struct runner *r, const struct grammar *g);
void runner_free(struct runner *r);
void places_free(struct places *s);

/* work becomes the places and those that their ends lead to; also sets `bottom` and `left`. */
void runner_beside(struct runner *r, const struct place *place, uint32_t n);
/* out becomes where `byte` leads from the places. */
void runner_step(struct runner *r, const struct place *place, uint32_t n, uint8_t byte,
                 struct places *out);
/* The same for a token as a whole, by edges of tokens alone. */
void runner_step_token(struct runner *r, const struct place *place, uint32_t n, int32_t id,
                       struct places *out);
/* work becomes the places from which such edges may lead on; those whose rules end stay there. */
void runner_named(struct runner *r, const struct place *place, uint32_t n);
/* work becomes what follows when the rule that runs in `frame` ends. */
void runner_leave(struct runner *r, uint32_t frame);
/* The frame in which a call's rule runs, called from a place in `frame`; UINT32_MAX: failed. */
uint32_t runner_enter(struct runner *r, uint32_t frame, uint32_t call);
/* Bytes that may follow `work`. */
struct grammar_bytes runner_first(const struct runner *r, bool *token);
void places_add(struct runner *r, struct places *set, uint32_t frame, uint32_t node);
void places_sort(struct places *set); /* nothing can be added to it then */

#endif
