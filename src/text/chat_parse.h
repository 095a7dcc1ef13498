/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_parse.h: what a chat model writes, told apart: content, reasoning and tool calls. Text comes
 * in pieces as the model makes it; any cut into pieces gives the same sums of what is told.
 *
 * How a model writes calls is a format (chat_formats.def, one chat_<name>.c each), how it marks its
 * reasoning a style (chat_thoughts.def). Text is told as soon as it cannot be part of a marker.
 *
 * Nothing the model wrote is lost but markers and the white space beside them: what begins as a
 * call and is none is content. Whole calls are told, or, `live`, a call's arguments while they
 * come: then what is wrong inside them follows as content, because the beginning cannot be taken
 * back.
 * A parser is used by one thread at a time. */
#ifndef TEXT_CHAT_PARSE_H
#define TEXT_CHAT_PARSE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

struct chat_format;
struct chat_thought;
struct chat_parser;

/* ---- formats and styles, constant ---- */

/* The i-th, in alphabetical order; NULL past the last. */
const struct chat_format *chat_format_at(size_t i);
const char *chat_format_name(const struct chat_format *format);
const char *chat_format_about(const struct chat_format *format);
/* *out: the format of that name; OB_ERR_NOT_FOUND lists the names there are. */
ob_status chat_format_find(const char *name, const struct chat_format **out, ob_error *error);
/* The one whose markers the Jinja source has; "generic" if it has none of any. */
const struct chat_format *chat_format_of(struct str source);
/* The style that goes with it: the format's own, else the one whose markers the source has. */
const struct chat_thought *chat_thought_of(const struct chat_format *format, struct str source);
/* The style of that name; NULL if there is none. */
const struct chat_thought *chat_thought_find(const char *name);
const char *chat_thought_name(const struct chat_thought *style);
struct str chat_thought_open(const struct chat_thought *style);
struct str chat_thought_close(const struct chat_thought *style);
/* Whether a prompt ends by opening the reasoning, white space apart. */
bool chat_thought_is_open(const struct chat_thought *style, struct str prompt);
/* Whether a text has opened it and not closed it: its last marker is an opening one. */
bool chat_thought_is_inside(const struct chat_thought *style, struct str text);
/* What ends the reasoning when it is cut short, up to where the answer begins. */
struct str chat_thought_end(const struct chat_thought *style);
/* Whether a token of that text is, or is in, a marker, so that the parser must see it though it is
 * a control token; style may be NULL. */
bool chat_format_needs(const struct chat_format *format, const struct chat_thought *style,
                       struct str token);

/* ---- parsing ---- */

enum chat_kind {
    CHAT_CONTENT,   /* text: more of the answer */
    CHAT_REASONING, /* text: more of the reasoning */
    CHAT_TOOL,      /* a call begins: index, id, name */
    CHAT_ARGUMENTS, /* text: more of the call's arguments, JSON in sum */
};

struct chat_event {
    enum chat_kind kind;
    unsigned index; /* of the call, from 0 */
    struct str id, name, text; /* as long as the call of the function */
};

enum chat_begin {
    CHAT_BEGIN_ANSWER,    /* reasoning may come first */
    CHAT_BEGIN_REASONING, /* the prompt has opened it */
    CHAT_BEGIN_CONTENT,   /* there is none, or it is not told apart */
};

struct chat_parser_options {
    const struct chat_format *format;  /* NULL: nothing but reasoning is told apart */
    bool calls;                        /* else what is a call in the format is content */
    const struct chat_thought *style;  /* NULL: reasoning is content */
    enum chat_begin begin;
    struct str prompt;    /* its end tells what the template has written of the answer already */
    const json_t *tools;  /* of the request, copied; NULL: no types of arguments are known */
    uint64_t seed;        /* of the ids of calls that the model gives none */
    bool live;            /* arguments are told as they come */
    bool single;          /* what follows the first call is not told (parallel_tool_calls: false) */
    void (*on)(void *user, const struct chat_event *event);
    void *user;
};

/* NULL: out of memory. */
struct chat_parser *chat_parser_new(const struct chat_parser_options *options);
void chat_parser_free(struct chat_parser **parser);
void chat_parser_add(struct chat_parser *parser, struct str text);
/* The end of the text: tells what was held back. */
void chat_parser_end(struct chat_parser *parser);
bool chat_parser_is_thinking(const struct chat_parser *parser);
unsigned chat_parser_calls(const struct chat_parser *parser);
/* Out of memory: something was not told. */
bool chat_parser_failed(const struct chat_parser *parser);

#endif
