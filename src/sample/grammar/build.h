/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h: a grammar put together from expressions, by what reads GBNF, JSON schemas and regular
 * expressions. Text is UTF-8: classes are of code points, literals of bytes. An expression is made
 * once, never changed, and may be used in several places; it lives as long as its builder. Running
 * out of memory or past a limit makes every later call a no-op that returns expression 0, and
 * grammar_finish() says why. Not thread safe: one owner. */
#ifndef SAMPLE_GRAMMAR_BUILD_H
#define SAMPLE_GRAMMAR_BUILD_H

#include "base/str.h"
#include "sample/grammar/grammar.h"

struct grammar_builder;
typedef uint32_t grammar_expr; /* 0: none, what a failed builder returns */
typedef uint32_t grammar_rule;

enum { GRAMMAR_NO_LIMIT = 0x7fffffff }; /* `max` of grammar_repeat */

struct grammar_range { uint32_t low, high; }; /* code points, both included */

/* NULL: out of memory. */
struct grammar_builder *grammar_builder_new(void);
void grammar_builder_free(struct grammar_builder **b);
bool grammar_builder_failed(const struct grammar_builder *b);

/* The rule of that name, made if there is none yet; defined before or after it is used. */
grammar_rule grammar_rule_named(struct grammar_builder *b, struct str name);
/* A rule that no name finds; `about` stands in messages. */
grammar_rule grammar_rule_new(struct grammar_builder *b, const char *about);
bool grammar_rule_defined(const struct grammar_builder *b, grammar_rule rule);
void grammar_define(struct grammar_builder *b, grammar_rule rule, grammar_expr expr);
grammar_expr grammar_use(struct grammar_builder *b, grammar_rule rule);

grammar_expr grammar_empty(struct grammar_builder *b);   /* "" */
grammar_expr grammar_nothing(struct grammar_builder *b); /* matches no text at all */
grammar_expr grammar_text(struct grammar_builder *b, struct str bytes);
/* One code point of the ranges (any order, may overlap), or, negated, one outside. */
grammar_expr grammar_class(struct grammar_builder *b, const struct grammar_range *range, size_t n,
                           bool negated);
grammar_expr grammar_seq(struct grammar_builder *b, const grammar_expr *part, size_t n);
grammar_expr grammar_alt(struct grammar_builder *b, const grammar_expr *part, size_t n);
/* Whatever the counts, the size of the result does not grow with them. */
grammar_expr grammar_repeat(struct grammar_builder *b, grammar_expr part, uint32_t min,
                            uint32_t max);
/* The token of that id, whatever its text; or, negated, any token but that one. */
grammar_expr grammar_token(struct grammar_builder *b, int32_t id, bool negated);

/* Compiles what `root` reaches. OB_ERR_ARGUMENT with the rule's name: not defined, left recursive;
 * OB_ERR_LIMIT: larger than docs/grammars.md allows. The builder stays, its owner frees it. */
ob_status grammar_finish(struct grammar_builder *b, grammar_rule root, struct grammar **out,
                         ob_error *error);

#endif
