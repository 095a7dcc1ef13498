/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_added.h: the tokens that are cut out of a text before anything else happens to it: control
 * tokens and other added ones. Found leftmost, then longest; a control token only where each of its
 * bytes is trusted. Filled once, then immutable. */
#ifndef TEXT_TOK_ADDED_H
#define TEXT_TOK_ADDED_H

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"

struct added_token {
    int32_t id;
    bool control;              /* needs trust */
    bool left, right;          /* swallows white space before, after it */
    bool word;                 /* only between characters that are no word characters */
};

struct added_node {
    unsigned char byte;
    uint32_t child, sibling; /* 0: none */
    uint32_t token;          /* index + 1; 0: none ends here */
};

struct added {
    struct added_token *token;
    uint32_t n, cap;
    struct added_node *node; /* node 0 is the root */
    uint32_t nodes, node_cap;
    bool first[256]; /* bytes that start a token */
};

ob_status added_put(struct added *added, struct str text, struct added_token token,
                    ob_error *error);
void added_set_control(struct added *added, int32_t id);
void added_free(struct added *added);

struct added_match {
    size_t start, end; /* with the white space it swallowed */
    int32_t id;        /* -1: none up to the end */
};
/* The first match in p[from..n). trust: a byte for each of p, NULL: all as `trusted`. */
struct added_match added_find(const struct added *added, const char *p, size_t n, size_t from,
                              const uint8_t *trust, bool trusted);

#endif
