/* SPDX-License-Identifier: Apache-2.0
 *
 * ast.h: a parsed template. Nodes live in the template's arena and never change after parsing, so
 * many threads may render one template. Names are numbered (symbols) so that scopes compare
 * integers. The depth of the tree is bounded by the parser, so walking it needs no check of its
 * own; calls are counted when they run. */
#ifndef TEXT_JINJA_AST_H
#define TEXT_JINJA_AST_H

#include "base/arena.h"
#include "text/jinja/jinja.h"
#include "text/jinja/value.h"

enum node_kind {
    /* expressions */
    NODE_CONST,   /* constant */
    NODE_BIG,     /* whole: a literal beyond 64 bits */
    NODE_NAME,    /* symbol */
    NODE_LIST,    /* items */
    NODE_TUPLE,   /* items */
    NODE_DICT,    /* items: key, value, key, value ... */
    NODE_CONCAT,  /* items: a ~ b ~ c */
    NODE_UNARY,   /* op, a */
    NODE_BINARY,  /* op, a, b */
    NODE_AND,     /* a, b */
    NODE_OR,      /* a, b */
    NODE_COND,    /* a if b else c; c may be NULL */
    NODE_COMPARE, /* compare */
    NODE_ATTR,    /* attr */
    NODE_ITEM,    /* a[b]; b may be a NODE_SLICE */
    NODE_SLICE,   /* a:b:c, each may be NULL */
    NODE_CALL,    /* call */
    NODE_FILTER,  /* call; subject NULL: the text of the block around it */
    NODE_TEST,    /* call */
    NODE_MEMBER,  /* ref: assignment to name.attribute */
    /* statements */
    NODE_BODY,   /* items */
    NODE_OUTPUT, /* items */
    NODE_FOR,
    NODE_IF,
    NODE_SET,       /* a = b */
    NODE_SET_BLOCK, /* a = body b through filter c (may be NULL) */
    NODE_MACRO,
    NODE_CALL_BLOCK,   /* macro: the body as caller; call */
    NODE_FILTER_BLOCK, /* body a through filter b */
    NODE_WITH,         /* items: target, value ...; body */
    NODE_SCOPE,        /* a: {% generation %} */
    NODE_BLOCK,        /* a: {% block %} */
    NODE_BREAK,
    NODE_CONTINUE,
};

enum node_op {
    OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW,
    OP_NEG, OP_POS, OP_NOT,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_IN, OP_NOT_IN,
};

struct node;

struct node_list {
    struct node **item;
    size_t n;
};

struct node_args {
    struct node_list positional, keyword;
    const struct text **name; /* of the keywords */
    struct node *star, *star_star;
};

struct param {
    uint32_t symbol;
    const struct text *name;
    struct node *value; /* default, may be NULL */
};

struct macro_def {
    const struct text *name; /* NULL: the body of a call block */
    struct param *param;
    size_t n;
    struct node *body;
    bool uses_caller, uses_kwargs, uses_varargs;
};

struct node {
    uint8_t kind, op;
    uint16_t depth;
    uint32_t line;
    union {
        struct value constant;
        struct {
            struct str digit;
            unsigned base;
        } whole;
        uint32_t symbol;
        struct node_list items;
        struct {
            struct node *a, *b, *c;
        };
        struct {
            struct node *first;
            struct node_list operand;
            uint8_t *op; /* one an operand */
        } compare;
        struct {
            struct node *of;
            const struct text *name;
        } attr;
        struct {
            uint32_t symbol;
            const struct text *name;
        } ref;
        struct {
            struct node *subject;
            const struct builtin *builtin; /* NULL: unknown, an error when it runs */
            const struct text *name;
            struct node_args *args;
        } call;
        struct {
            struct node *target, *iter, *test, *body, *otherwise;
            bool recursive;
        } loop;
        struct {
            struct node_list test, body; /* one body a test */
            struct node *otherwise;
        } branch;
        struct {
            struct macro_def *def;
            uint32_t symbol; /* the name it is stored under */
            struct node *call;
        } macro;
        struct {
            struct node_list items;
            struct node *body;
        } with;
    };
};

/* Symbols every template has, in this order. */
enum { SYMBOL_LOOP, SYMBOL_CALLER, SYMBOL_KWARGS, SYMBOL_VARARGS, SYMBOLS_FIXED };

struct jinja {
    struct arena arena;
    struct node *body;
    const struct text **symbol;
    size_t symbols;
};

#endif
