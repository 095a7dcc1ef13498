/* SPDX-License-Identifier: Apache-2.0
 * generate.h: what the routes that generate text have in common: from the request's body to an
 * answer, whole or streamed. A route gives its wording. */
#ifndef SERVER_GENERATE_H
#define SERVER_GENERATE_H

#include <jansson.h>

#include "server/params.h"
#include "server/think.h"

struct server;
struct http_exchange;
struct generation;

/* What a route says where the routes differ. The json_t are entries of "choices", NULL when out of
 * memory. */
struct wording {
    const char *id;    /* prefix of the answer's id */
    const char *whole; /* "object" of a whole answer and of a chunk */
    const char *chunk;
    /* Prompt tokens of the request; *think as it is when the answer begins (the state alone). */
    ob_status (*prompt)(const ob_engine *engine, const json_t *request, const struct params *params,
                        ob_tokens *out, enum think_state *think, ob_error *error);
    json_t *(*answer)(struct str thought, struct str text, const char *finish);
    json_t *(*opening)(void); /* of the first chunk; no function: there is none */
    json_t *(*piece)(struct str text, bool thought);
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
