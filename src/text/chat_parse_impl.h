/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_parse_impl.h: what the files of chat_parse.h share. A format is a table of patterns, which
 * chat_call.c follows; chat_parse.c finds where they begin.
 *
 * A pattern is text that stands for itself, and
 *   %_  white space, also none         %N  the name: letters, digits and _ - . : /
 *   %F  functions.NAME:INDEX, an id    %I  an id, as a name
 *   %(  text %)  once or not at all    %*  whatever stands before the text that follows
 *   %J  the arguments, a JSON object   %G  the same in Gemma's spelling (chat_loose.h)
 *   %P  the arguments, each one as in `parameter`: %K its name, %V its value, %T its type
 *   %A  JSON objects with a name and arguments, in an array or a row, each a call
 *   %Y  Python calls, in a list or a row, each a call
 *   %!  what follows is a call only if the request has a tool of that name
 *   %.  here the call is whole: what follows may be missing */
#ifndef TEXT_CHAT_PARSE_IMPL_H
#define TEXT_CHAT_PARSE_IMPL_H

#include "text/chat_match.h"
#include "text/chat_parse.h"
#include "text/chat_scan.h"

enum { CHAT_CALLS = 5, CHAT_BARE = 3, CHAT_SKIPS = 9, CHAT_SOURCES = 4, CHAT_MARKS = 32,
       CHAT_WRITES = 3, CHAT_TRIGGERS = 3 };

struct chat_thought {
    const char *name, *open, *close;
    const char *end;   /* NULL: `close` is all that ends it */
    bool anywhere;     /* not only before the answer */
};

/* How calls are written where they are held to a grammar (chat_write.c). Text that stands for
 * itself, and
 *   %N  the name      %J  the arguments, JSON      %G  the same in Gemma's spelling
 *   %Y  Python's, in brackets                      %P  each one as in `parameter`
 *   %#  a number      %I  an id of 9 letters       %K %V %T  in `parameter`, as above */
struct chat_write {
    const char *before, *call, *between, *after; /* around all calls, a call, between two */
    const char *parameter;
    const char *source;  /* only if the template has it; the first that fits counts */
    const char *content; /* what text that is no call begins with */
    const char *trigger[CHAT_TRIGGERS]; /* only calls have these; none: what patterns begin with */
    bool single;         /* one call is all that an answer may have */
    bool bare;           /* nothing marks it */
};

struct chat_format {
    const char *name, *about;
    const char *source[CHAT_SOURCES]; /* a template with all of these is of the format; no entry:
                                       * none is. Several fit: the one with the most text */
    const char *call[CHAT_CALLS];     /* patterns; the first that fits counts */
    const char *bare[CHAT_BARE];      /* the same where the answer begins with { or [ */
    const char *parameter;            /* a pattern, of %P */
    const char *skip[CHAT_SKIPS];     /* markers that say nothing */
    const char *prompt;               /* begins the first message; the prompt ends with it */
    const struct chat_thought *thought; /* its own style; NULL: any of chat_thoughts.def */
    const char *quote;                /* of %G */
    bool lines;        /* values of parameters stand on lines of their own */
    bool name_is_key;  /* %A: {"the name": {its arguments}} */
    bool short_ids;    /* ids are 9 letters and digits */
    bool ends_thought; /* a call inside the reasoning ends it */
    bool skip_after_thought; /* the markers to skip come only behind reasoning */
    struct chat_write write[CHAT_WRITES]; /* no `call`: calls cannot be held to a grammar */
};

#define FORMAT(name) extern const struct chat_format chat_format_##name;
#include "text/chat_formats.def"
#undef FORMAT

/* A call on its way. Offsets are of chat_parser.in. */
struct chat_call {
    const char *pc;      /* where the pattern is */
    const char *back;    /* and goes on behind a parameter; NULL: outside of any */
    size_t pattern;      /* its number */
    bool bare;           /* of `bare` */
    size_t start, pos;   /* of the call; what comes next */
    size_t mark;         /* of the value being read */
    bool whole, must_know, array, reading, string;
    unsigned done;       /* calls of this pattern that were told */
    size_t done_at;
    bool begun;          /* CHAT_TOOL was told */
    unsigned parameters, level, role;
    struct scan scan;
    unsigned nest;       /* brackets open at in[mark] of a loose value, */
    char quoted;         /* and the quote; 0: none, else ' " or the first byte of the format's */
    struct buf name, id, key, args;
};

enum chat_state { CHAT_BEFORE, CHAT_THINKING, CHAT_AFTER, CHAT_TEXT, CHAT_CALL, CHAT_OVER };
enum chat_role { CHAT_MARK_CALL, CHAT_MARK_SKIP, CHAT_MARK_THOUGHT };

struct chat_parser {
    struct chat_parser_options options;
    json_t *tools;
    enum chat_state state;
    struct buf in;
    size_t at;          /* in[at..] is not told yet */
    size_t swallow;     /* in[..swallow] is the prompt's */
    size_t looked;      /* in[at..looked] is white space: not looked at again */
    bool no_end;        /* no parameter ends any more */
    bool last;          /* no more text comes */
    bool thought, spoken; /* some was told */
    bool after_thought, after_call, failed;
    unsigned calls;
    struct str mark[CHAT_MARKS]; /* those of chat_state TEXT */
    enum chat_role role[CHAT_MARKS];
    size_t marks;
    struct chat_call call;
};

enum chat_step { CHAT_ON, CHAT_WAIT, CHAT_FAIL };

static inline struct str chat_parser_text(const struct chat_parser *p) {
    return (struct str){p->in.p ? p->in.p : "", p->in.n};
}

/* ---- chat_call.c ---- */
/* Begins at in[start]; false if the format has no pattern of that number. */
bool chat_call_begin(struct chat_parser *p, size_t start, bool bare, size_t pattern);
/* ON: the pattern is at its end. FAIL: call.done and call.begun say what was told already. */
enum chat_step chat_call_run(struct chat_parser *p);
void chat_call_free(struct chat_call *call);
/* The texts that a pattern may begin with; returns how many there are: more than one if the first
 * may be missing. */
enum { CHAT_OPENS = 3 };
size_t chat_pattern_opens(const char *pattern, struct str out[CHAT_OPENS]);

/* ---- chat_value.c ---- */
enum chat_type { CHAT_TYPE_UNKNOWN, CHAT_TYPE_STRING, CHAT_TYPE_OTHER };
/* Of a tool's parameter, by the schema in the request. */
enum chat_type chat_value_type(const json_t *tools, struct str tool, struct str key);
bool chat_value_knows(const json_t *tools, struct str tool);
/* The value as JSON: what is none becomes a string. */
void chat_value_put(struct buf *out, struct str value, enum chat_type type);

#endif
