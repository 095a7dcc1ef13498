/* SPDX-License-Identifier: Apache-2.0
 *
 * pattern.h: regular expressions of ECMA-262 (with its flag u) as trees, and what is made of them.
 *
 * JSON schemas are checked by programs in many languages whose \d, \w and \s differ outside ASCII.
 * A class holds the characters on which ECMA-262 and Unicode's own definitions agree, so that what
 * it lets through is valid for both. */
#ifndef SAMPLE_SCHEMA_PATTERN_H
#define SAMPLE_SCHEMA_PATTERN_H

#include "base/arena.h"
#include "sample/grammar/build.h"

enum pattern_kind {
    PATTERN_EMPTY, PATTERN_CLASS, PATTERN_SEQ, PATTERN_ALT, PATTERN_REPEAT, PATTERN_BEGIN,
    PATTERN_END
};

struct pattern_node {
    enum pattern_kind kind;
    uint32_t n;                  /* ranges of a class, parts of the others (a repeat: 1) */
    uint32_t min, max;           /* of a repeat; GRAMMAR_NO_LIMIT */
    const struct grammar_range *range; /* sorted, apart, never touching */
    struct pattern_node **part;
};

struct pattern {
    struct arena arena;
    struct pattern_node *root;
    unsigned scans; /* classes that took a pass over all of Unicode */
};

/* OB_ERR_ARGUMENT names what is not supported and its column. */
ob_status pattern_read(struct str text, struct pattern *out, ob_error *error);
void pattern_free(struct pattern *regex);

/* How characters are written where the expression stands. */
typedef grammar_expr (*pattern_spell)(struct grammar_builder *b, const struct grammar_range *range,
                                    size_t n);

/* Texts that the expression matches; anywhere in them (`search`), as patterns of schemas do, or
 * whole. OB_ERR_ARGUMENT: ^ or $ stands in the middle. */
ob_status pattern_expr(const struct pattern *regex, bool search, pattern_spell spell,
                     struct grammar_builder *b, grammar_expr *out, ob_error *error);

/* Whether it matches anywhere in the text. `unknown`: that takes too long to find out. */
bool pattern_matches(const struct pattern *regex, struct str text, bool *unknown);

/* Between how many code points the texts have that it matches somewhere. */
struct pattern_length { uint64_t min, max; };
struct pattern_length pattern_length(const struct pattern *regex);
/* If all it says is that a text has so many characters of one class, that class as a repeat; else
 * NULL. */
const struct pattern_node *pattern_as_repeat(const struct pattern *regex);

/* ---- pattern_class.c: sets of code points ---- */

struct list;
enum { PATTERN_SCANS = 32 }; /* at most */

/* Sorts and joins; `negated`: the others. In place. False: out of memory. */
bool pattern_ranges_tidy(struct list *ranges, bool negated);
/* \d \w \s \D \W \S, by its letter; `wide`: all characters that any definition counts, instead of
 * those that all do. */
bool pattern_add_class(struct list *ranges, char letter, bool wide);
/* \p{name}: a general category, long or short. False: there is none. */
bool pattern_add_property(struct list *ranges, struct str name, bool negated);

#endif
