/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_grammar.h: answers that call the tools of a request, as grammars: calls in the model's own
 * format, with arguments that are valid for the tools' schemas. Whatever such a grammar lets
 * through, the format's parser (chat_parse.h) reads back as those calls. A call that must come
 * comes first, or behind reasoning; one that may come, behind any text without the format's
 * markers: what the parser takes for a call by its name alone, as careless models write them, is
 * such text. Thread safe. */
#ifndef TEXT_CHAT_GRAMMAR_H
#define TEXT_CHAT_GRAMMAR_H

#include <jansson.h>

#include "sample/grammar/grammar.h"
#include "text/chat_parse.h"

enum chat_choice_kind { CHAT_CHOICE_AUTO, CHAT_CHOICE_NONE, CHAT_CHOICE_REQUIRED };

/* What "tools", "tool_choice" and "parallel_tool_calls" say together. */
struct chat_choice {
    enum chat_choice_kind kind;
    struct str name; /* of the only tool that may be called; empty: any. The request's */
    bool single;     /* one call at most */
    bool strict;     /* a tool is "strict" */
};
/* OB_ERR_ARGUMENT names the field. */
ob_status chat_choice_read(const json_t *request, struct chat_choice *out, ob_error *error);
/* What says "name" and "parameters" of a tool: its "function", or the tool itself. */
const json_t *chat_choice_function(const json_t *tool);

/* Whether a grammar has a say in the answer. */
static inline bool chat_choice_binds(const struct chat_choice *choice) {
    return choice->kind == CHAT_CHOICE_REQUIRED ||
           (choice->kind == CHAT_CHOICE_AUTO && choice->strict);
}

/* How the vocabulary has the markers of the format. */
struct chat_tokens {
    const void *user;
    /* The control token of exactly this text; -1: there is none. *ends: it ends an answer. */
    int32_t (*control)(const void *user, struct str text, bool *ends);
};

struct chat_grammar_options {
    const struct chat_format *format;
    const struct chat_thought *style; /* may come first, if it is the format's own or the template
                                       * has its marker; NULL: none */
    struct str source;                /* of the template: which of its spellings a format has */
    struct str prompt;                /* its end: what the template has written of the answer */
    const json_t *tools;
    struct chat_choice choice;
    const struct chat_tokens *tokens; /* NULL: no control tokens */
    bool compact;                     /* JSON without white space */
    bool open;                        /* see struct schema_options */
};

/* OB_ERR_ARGUMENT: `where` names the tool, and in its schema the JSON pointer;
 * OB_ERR_UNSUPPORTED: the format has no calls that a grammar could write. */
ob_status chat_grammar(const struct chat_grammar_options *options, struct grammar **out,
                       ob_error *error);

#endif
