/* SPDX-License-Identifier: Apache-2.0
 * chat_match.h: markers in text that is not all there yet. */
#ifndef TEXT_CHAT_MATCH_H
#define TEXT_CHAT_MATCH_H

#include "base/str.h"

enum match { MATCH_NO, MATCH_PART, MATCH_YES };

/* How the text from `at` on begins with the marker: PART if the text ends inside it. */
enum match match_at(struct str text, size_t at, struct str mark);
/* The first place from `from` on where a marker is: its number in *which, of several the longest.
 * If there is none, *which is n and the place is where one may begin when more text comes, text.n
 * if nowhere (`last`: no more comes). */
size_t match_find(struct str text, size_t from, const struct str *mark, size_t n, bool last,
                  size_t *which);

static inline bool match_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

#endif
