/* SPDX-License-Identifier: Apache-2.0
 * chat_write.h: between chat_grammar.c, which says where calls stand in an answer, and
 * chat_write.c, which says what they are. */
#ifndef TEXT_CHAT_WRITE_H
#define TEXT_CHAT_WRITE_H

#include "sample/schema/schema.h"
#include "text/chat_grammar.h"
#include "text/chat_parse_impl.h"

struct writer {
    const struct chat_grammar_options *options;
    const struct chat_write *write;
    struct grammar_builder *b;
    size_t tool;       /* the number of the one being written */
    const json_t *function;
    char end[64];      /* what no string between tags contains */
    ob_status status;  /* why it failed */
    ob_error *error;
};

/* Literal text: control tokens as such, what ends an answer left out. */
grammar_expr write_text(struct writer *w, struct str text);
/* The control token that text begins with, the longest; -1: none. */
int32_t write_control(const struct writer *w, struct str text, size_t *n, bool *ends);
/* All calls that the choice allows, in a row. */
grammar_expr write_calls(struct writer *w);

#endif
