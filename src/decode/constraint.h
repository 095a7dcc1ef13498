/* SPDX-License-Identifier: Apache-2.0
 *
 * constraint.h: the grammar of one request: which tokens may come next. It may begin behind a text
 * (the end of a thought); until then every token may come. Not thread safe: one a request. */
#ifndef DECODE_CONSTRAINT_H
#define DECODE_CONSTRAINT_H

#include "onebit.h"
#include "sample/grammar/grammar.h"

struct constraint;
/* Counts the grammar, copies `after` (NULL or "": it begins at once), borrows `vocab`, which opened
 * `grammars`. */
ob_status constraint_open(struct grammar *grammar, const char *after,
                          const struct sample_vocab *vocab, struct grammar_vocab *grammars,
                          struct constraint **out, ob_error *error);
void constraint_close(struct constraint **c);

/* For sample_input.mask; NULL in *mask: any token. OB_ERR_MEMORY. */
ob_status constraint_mask(struct constraint *c, const uint32_t **mask, ob_error *error);
/* The token was drawn. False: it was not allowed, which the mask should have told. */
bool constraint_accept(struct constraint *c, int32_t id);
/* The text is whole and nothing may follow. */
bool constraint_is_over(const struct constraint *c);

#endif
