/* SPDX-License-Identifier: Apache-2.0
 *
 * dry_breaks.h: where DRY's sequence breakers are in a run of tokens. A breaker is a text; it
 * starts in a token that holds all of it, or that ends with its beginning and is followed by the
 * tokens of the rest. */
#ifndef SAMPLE_DRY_BREAKS_H
#define SAMPLE_DRY_BREAKS_H

#include "sample/sample.h"

struct dry_breaks;

/* The settings' breakers. Keeps `vocab`. */
ob_status dry_breaks_open(const ob_sampling *settings, const struct sample_vocab *vocab,
                          struct dry_breaks **out, ob_error *error);
void dry_breaks_close(struct dry_breaks *breaks);
/* The token holds a whole breaker. */
bool dry_breaks_holds(struct dry_breaks *breaks, int32_t id);
/* How many tokens of token[1..n) belong to the longest breaker that starts in token[0]; -1: none
 * does. */
int32_t dry_breaks_match(struct dry_breaks *breaks, const int32_t *token, size_t n);

#endif
