/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.h: the expressions of a builder (build.h) as its compiler reads them: an array in which the
 * parts of an expression come before it, so that a walk in order of ids sees parts first. Loops go
 * through rules alone. */
#ifndef SAMPLE_GRAMMAR_EXPR_H
#define SAMPLE_GRAMMAR_EXPR_H

#include "sample/grammar/build.h"

enum expr_kind {
    EXPR_NONE, EXPR_EMPTY, EXPR_NOTHING, EXPR_TEXT, EXPR_CLASS, EXPR_SEQ, EXPR_ALT, EXPR_REPEAT,
    EXPR_TOKEN, EXPR_RULE,
};

enum {
    EXPR_MAX = 1 << 18,       /* expressions of a builder */
    EXPR_MAX_PARTS = 1 << 20, /* parts of sequences and alternatives, and ranges, together */
    EXPR_MAX_BYTES = 1 << 23, /* of literals */
    EXPR_MAX_RULES = 1 << 16,
    EXPR_MAX_DEPTH = 400,     /* of expressions within one rule: what walks them recurses */
};

struct expr {
    uint8_t kind;
    bool negated;        /* TOKEN */
    uint16_t depth;
    uint32_t first, n;   /* TEXT: of bytes; CLASS: of ranges; SEQ, ALT: of parts; TOKEN: the id;
                          * RULE: the rule; REPEAT: the part */
    uint32_t min, max;   /* REPEAT */
};

struct expr_rule {
    char *name; /* own; what messages call it */
    size_t name_n;
    bool found;        /* by name */
    uint32_t next;     /* in the hash chain of names */
    grammar_expr expr; /* 0: not defined */
};

struct grammar_builder {
    struct expr *expr; /* [0] is EXPR_NONE */
    grammar_expr *part;
    struct grammar_range *range; /* sorted, apart, without surrogates */
    char *bytes;
    struct expr_rule *rule; /* [0] is unused, so that 0 says none */
    uint32_t *head;         /* of the chains of names [heads] */
    uint32_t expr_n, expr_cap, part_n, part_cap, range_n, range_cap, bytes_n, bytes_cap, rule_n,
        rule_cap, heads;
    ob_status status; /* why it failed */
    const char *why;
};

#endif
