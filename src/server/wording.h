/* SPDX-License-Identifier: Apache-2.0
 * wording.h: the seam between generation (generate.c), which is one, and the APIs it answers in.
 * An API turns its request into one of /v1/chat/completions or /v1/completions, whose fields
 * params.h reads, and words what comes of it: a whole answer or the bytes of a stream.
 *
 * A request may have several answers ("choices"): each is a sequence of the engine. Functions that
 * give JSON return NULL when out of memory; those that write fail the buffer. */
#ifndef SERVER_WORDING_H
#define SERVER_WORDING_H

#include <jansson.h>

#include "base/buf.h"
#include "server/params.h"
#include "text/chat_parse.h"

struct server;

/* Prompts of a request, and how the answers begin, for whoever tells their parts apart. */
struct opening {
    ob_tokens *prompt; /* [n], malloc'd */
    struct str *echo;  /* [n], malloc'd: texts that the answers repeat; NULL: none. They belong to
                        * the request, or to prompt.c */
    size_t n;
    char **own;        /* [n] malloc'd texts of `echo`; NULL: none */
    bool chat;         /* else all of an answer is text */
    enum chat_begin begin;
    const struct chat_thought *style; /* the model's */
    char *text; /* malloc'd: of the one prompt of a chat */
    size_t text_n;
};

/* One answer at its end. Of a stream, thought and text have been told and are empty. */
struct said {
    unsigned index;
    struct str thought, text;
    json_t *calls;       /* entries of "tool_calls" as chats have them; borrowed */
    const char *finish;  /* "stop", "length", "tool_calls" */
    const char *stop;    /* the stop string that ended it; NULL: none did */
    ob_timings timings;
    struct str records;  /* of logprobs.h, not told yet */
    size_t *offset;      /* of logprobs_completion() */
};

/* A part of a stream. */
struct piece {
    unsigned index; /* of the answer */
    const struct chat_event *event;
    struct str records;
    size_t *offset;
    ob_timings timings; /* so far */
};

/* What wordings know of the answers under way. */
struct answer {
    struct server *server;
    const ob_engine *engine;
    const json_t *original; /* the request as it came, and as it was translated */
    const json_t *request;
    const struct params *params;
    char id[48];
    json_int_t created;
    unsigned choices;
    size_t prompt_tokens;
    ob_timings timings;  /* of all together, at the end: each prompt counts once */
    double total_ms;     /* from the request on */
    /* For the wording's own use, zero at first: which part of a stream is open. */
    int part;
    unsigned parts, sequence;
    struct buf text;
    json_t *items;
};

struct wording {
    const char *id;   /* prefix of the answer's id */
    const char *type; /* of a stream: SSE_TYPE, LINES_TYPE */
    const char *ping; /* what a silent stream says now and then; NULL: nothing */
    /* *out: the request in the words of params.h. No function: it is. */
    ob_status (*translate)(struct server *server, const json_t *request, json_t **out,
                           ob_error *error);
    /* Pairs for errors, to the first NULL: a field of params.h, what it is called here. */
    const char *const (*fields)[2];
    /* The opening comes with the style and BEGIN_CONTENT. */
    ob_status (*prompts)(const ob_engine *engine, const json_t *request,
                         const struct params *params, struct opening *out, ob_error *error);
    json_t *(*whole)(struct answer *answer, const struct said *said); /* [choices] */
    /* A stream: begin (may be NULL), then pieces and one ending a choice, then last (may be
     * NULL); or in place of what is left: failed, with the error as the route shapes it. */
    void (*begin)(struct answer *answer, struct buf *out);
    void (*piece)(struct answer *answer, const struct piece *piece, struct buf *out);
    void (*ending)(struct answer *answer, const struct said *said, struct buf *out);
    void (*last)(struct answer *answer, struct buf *out);
    void (*failed)(struct answer *answer, json_t *error, struct buf *out);
};

#endif
