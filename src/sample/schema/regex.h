/* SPDX-License-Identifier: Apache-2.0
 *
 * regex.h: regular expressions of ECMA-262 (with its flag u) as trees, and what is made of them.
 *
 * JSON schemas are checked by programs in many languages whose \d, \w and \s differ outside ASCII.
 * A class holds the characters on which ECMA-262 and Unicode's own definitions agree, so that what
 * it lets through is valid for both. */
#ifndef SAMPLE_SCHEMA_REGEX_H
#define SAMPLE_SCHEMA_REGEX_H

#include "base/arena.h"
#include "sample/grammar/build.h"

enum regex_kind {
    REGEX_EMPTY, REGEX_CLASS, REGEX_SEQ, REGEX_ALT, REGEX_REPEAT, REGEX_BEGIN, REGEX_END
};

struct regex_node {
    enum regex_kind kind;
    uint32_t n;                  /* ranges of a class, parts of the others (a repeat: 1) */
    uint32_t min, max;           /* of a repeat; GRAMMAR_NO_LIMIT */
    const struct grammar_range *range; /* sorted, apart, never touching */
    struct regex_node **part;
};

struct regex {
    struct arena arena;
    struct regex_node *root;
    unsigned scans; /* classes that took a pass over all of Unicode */
};

/* OB_ERR_ARGUMENT names what is not supported and its column. */
ob_status regex_read(struct str text, struct regex *out, ob_error *error);
void regex_free(struct regex *regex);

/* How characters are written where the expression stands. */
typedef grammar_expr (*regex_spell)(struct grammar_builder *b, const struct grammar_range *range,
                                    size_t n);

/* Texts that the expression matches; anywhere in them (`search`), as patterns of schemas do, or
 * whole. OB_ERR_ARGUMENT: ^ or $ stands in the middle. */
ob_status regex_expr(const struct regex *regex, bool search, regex_spell spell,
                     struct grammar_builder *b, grammar_expr *out, ob_error *error);

/* Whether it matches anywhere in the text. `unknown`: that takes too long to find out. */
bool regex_matches(const struct regex *regex, struct str text, bool *unknown);

/* Between how many code points the texts have that it matches somewhere. */
struct regex_length { uint64_t min, max; };
struct regex_length regex_length(const struct regex *regex);
/* If all it says is that a text has so many characters of one class, that class as a repeat; else
 * NULL. */
const struct regex_node *regex_as_repeat(const struct regex *regex);

/* ---- regex_class.c: sets of code points ---- */

struct list;
enum { REGEX_SCANS = 32 }; /* at most */

/* Sorts and joins; `negated`: the others. In place. False: out of memory. */
bool regex_ranges_tidy(struct list *ranges, bool negated);
/* \d \w \s \D \W \S, by its letter; `wide`: all characters that any definition counts, instead of
 * those that all do. */
bool regex_add_class(struct list *ranges, char letter, bool wide);
/* \p{name}: a general category, long or short. False: there is none. */
bool regex_add_property(struct list *ranges, struct str name, bool negated);

#endif
