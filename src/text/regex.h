/* SPDX-License-Identifier: Apache-2.0
 *
 * regex.h: regular expressions of tokenizer files, by PCRE2 with JIT. They are written for
 * Oniguruma (Ruby's syntax), as the reference reads them: regex_onig.c writes them anew for PCRE2
 * and refuses what the two take differently. Character classes are those of unicode.h. A regex is
 * immutable; each thread brings its own regex_work. */
#ifndef TEXT_REGEX_H
#define TEXT_REGEX_H

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

struct regex;

/* What searching needs, zeroed at first; a search of one regex may follow one of another. */
struct regex_work {
    void *match; /* pcre2_match_data */
    void *stack, *context; /* of the JIT, made when the small one does not do */
};
void regex_work_free(struct regex_work *work);

/* The error names what the expression has that is not known. */
ob_status regex_open(struct str pattern, struct regex **out, ob_error *error);
void regex_close(struct regex **regex);
struct str regex_pattern(const struct regex *regex); /* as it was given */

enum regex_result { REGEX_NONE, REGEX_FOUND, REGEX_MEMORY, REGEX_LIMIT };
/* The first match that starts at `from` or later in valid UTF-8; may be empty. REGEX_LIMIT: the
 * expression costs too much on this text. */
enum regex_result regex_find(const struct regex *regex, struct regex_work *work, struct str text,
                             size_t from, size_t *start, size_t *end);

/* ---- inside ---- */

/* The pattern in PCRE2's syntax. `newer`: see regex.c. */
struct regex_newer {
    struct regex_run {
        uint32_t first, last;
        uint8_t category;
    } *run;
    size_t n, cap;
};
ob_status regex_translate(struct str pattern, const struct regex_newer *newer, struct buf *out,
                          ob_error *error);

#endif
