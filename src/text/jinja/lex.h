/* SPDX-License-Identifier: Apache-2.0
 *
 * lex.h: template text to tokens, one at a time. Follows jinja2's lexer with trim_blocks and
 * lstrip_blocks on: which white space around a tag disappears is decided here. */
#ifndef TEXT_JINJA_LEX_H
#define TEXT_JINJA_LEX_H

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"

enum token_kind {
    TOKEN_EOF,
    TOKEN_DATA,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_VARIABLE_BEGIN,
    TOKEN_VARIABLE_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_BIG, /* an integer beyond 64 bits: text has its digits in `base` */
    TOKEN_FLOAT,
    /* operators */
    TOKEN_ADD, TOKEN_SUB, TOKEN_MUL, TOKEN_DIV, TOKEN_FLOORDIV, TOKEN_MOD, TOKEN_POW, TOKEN_TILDE,
    TOKEN_EQ, TOKEN_NE, TOKEN_LT, TOKEN_LE, TOKEN_GT, TOKEN_GE, TOKEN_ASSIGN,
    TOKEN_LPAREN, TOKEN_RPAREN, TOKEN_LBRACKET, TOKEN_RBRACKET, TOKEN_LBRACE, TOKEN_RBRACE,
    TOKEN_DOT, TOKEN_COLON, TOKEN_PIPE, TOKEN_COMMA, TOKEN_SEMICOLON,
};

struct token {
    enum token_kind kind;
    uint32_t line;
    struct str text; /* data, name, and the decoded bytes of a string; else the source */
    int64_t i;
    unsigned base;
    double f;
};

enum { LEX_NESTING = 250 };

struct lexer {
    struct arena *arena;
    const char *p, *end;
    const char *start;
    uint32_t line;
    enum { LEX_ROOT, LEX_BLOCK, LEX_VARIABLE } state;
    bool line_starting; /* what was consumed last ended a line */
    enum token_kind pending; /* the tag that follows the data just given, or TOKEN_EOF */
    unsigned open;
    char closer[LEX_NESTING];
};

/* source must stay alive; newlines are normalized into the arena. False: *error is set. */
bool lex_init(struct lexer *lexer, struct arena *arena, const char *source, size_t n,
              ob_error *error);
bool lex_next(struct lexer *lexer, struct token *out, ob_error *error);

/* Printable, "'name'" or "end of print statement". */
const char *lex_describe(const struct token *token, char *out, size_t size);

#endif
