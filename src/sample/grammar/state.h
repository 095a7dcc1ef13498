/* SPDX-License-Identifier: Apache-2.0
 * state.h: what a state of grammar.h is, for the files that implement it. */
#ifndef SAMPLE_GRAMMAR_STATE_H
#define SAMPLE_GRAMMAR_STATE_H

#include "sample/grammar/runner.h"

struct grammar_state {
    struct grammar *grammar;
    struct grammar_vocab *vocab;
    struct binding *binding; /* of the grammar in the vocabulary; vocab.h */
    struct runner run;
    struct places at;   /* where the text stands; frames of run.stacks */
    struct places next, before, other; /* scratch */
    bool ended; /* by a token that ends generation */
};

#endif
