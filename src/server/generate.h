/* SPDX-License-Identifier: Apache-2.0
 * generate.h: what the routes that generate text have in common: from the request's body to an
 * answer, whole or streamed. A route gives its wording. */
#ifndef SERVER_GENERATE_H
#define SERVER_GENERATE_H

#include <jansson.h>

#include "server/params.h"
#include "text/chat_parse.h"

struct server;
struct http_exchange;
struct generation;

/* How an answer begins, for whoever tells its parts apart. */
struct opening {
    bool chat; /* else all of it is text */
    enum chat_begin begin;
    const struct chat_thought *style; /* the model's */
    char *prompt; /* malloc'd */
    size_t prompt_n;
};

/* What a whole answer says. */
struct said {
    struct str thought, text;
    json_t *calls; /* entries of "tool_calls"; borrowed */
    const char *finish;
};

/* What a route says where the routes differ. The json_t are entries of "choices", NULL when out of
 * memory. */
struct wording {
    const char *id;    /* prefix of the answer's id */
    const char *whole; /* "object" of a whole answer and of a chunk */
    const char *chunk;
    /* Prompt tokens of the request; `opening` comes with the style and BEGIN_CONTENT. */
    ob_status (*prompt)(const ob_engine *engine, const json_t *request, const struct params *params,
                        ob_tokens *out, struct opening *opening, ob_error *error);
    json_t *(*answer)(const struct said *said);
    json_t *(*opening)(void); /* of the first chunk; no function: there is none */
    json_t *(*piece)(const struct chat_event *event);
    json_t *(*ending)(const char *finish);
    /* "logprobs" of a choice, from records of logprobs.h; *offset starts at 0. */
    json_t *(*logprobs)(const ob_engine *engine, struct str records, bool after, size_t *offset);
};

/* Answers the exchange, now or later. On a worker thread. `wording` must stay. */
void generation_start(struct server *server, struct http_exchange *x,
                      const struct wording *wording);
/* Ends it at the next step; the server stops. */
void generation_stop(struct generation *g);

#endif
