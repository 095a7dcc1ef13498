/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.h: what the two halves of the parser share: statements (parse.c) and expressions
 * (parse_expr.c). Functions that make nodes return NULL on failure, with *p->error set. */
#ifndef TEXT_JINJA_PARSE_H
#define TEXT_JINJA_PARSE_H

#include "text/jinja/ast.h"
#include "text/jinja/lex.h"

/* Deeper trees are refused: a bound for everything that walks them recursively. */
enum { PARSE_DEPTH = 400 };

struct parser {
    struct jinja *jinja;
    struct lexer lexer;
    struct token now, ahead;
    bool has_ahead;
    unsigned level;   /* of the recursive descent */
    unsigned loops;   /* open for loops in this function body */
    bool uses[3];     /* caller, kwargs, varargs were read since the macro began */
    uint32_t *slot;   /* open-addressing table of symbol + 1, by name */
    size_t slots;
    ob_error *error;
};

bool parse_fail(struct parser *p, uint32_t line, ob_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *parse_alloc(struct parser *p, size_t size);
bool parse_enter(struct parser *p); /* one level down; p->level-- to leave */

bool parse_next(struct parser *p); /* moves on to the next token */
bool parse_peek(struct parser *p, struct token *out);
static inline bool parse_at(const struct parser *p, enum token_kind kind) {
    return p->now.kind == kind;
}
static inline bool parse_at_name(const struct parser *p, const char *name) {
    return p->now.kind == TOKEN_NAME && str_is(p->now.text, name);
}
bool parse_expect(struct parser *p, enum token_kind kind, const char *what);
/* Skips the token if it is there. *skipped tells. False: an error. */
bool parse_skip(struct parser *p, enum token_kind kind, bool *skipped);
bool parse_skip_name(struct parser *p, const char *name, bool *skipped);

struct node *parse_node(struct parser *p, enum node_kind kind, uint32_t line);
/* Counts the depth of `child` (may be NULL: then the parse failed) into `node`. */
bool parse_adopt(struct parser *p, struct node *node, const struct node *child);
bool parse_push(struct parser *p, struct node_list *list, struct node *node);
const struct text *parse_text(struct parser *p, struct str text);
bool parse_symbol(struct parser *p, struct str name, uint32_t *out);

/* ---- expressions ---- */
struct node *parse_expression(struct parser *p);
/* One expression, or several with commas as a tuple. end: a name that ends it, may be NULL. */
struct node *parse_tuple(struct parser *p, bool with_cond, bool parentheses, const char *end);
/* A name, tuple of names, or (members) name.attribute, to assign to. */
struct node *parse_target(struct parser *p, bool members, const char *end);
struct node *parse_filters(struct parser *p, struct node *subject, bool first_without_pipe);

#endif
