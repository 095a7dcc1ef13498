/* SPDX-License-Identifier: Apache-2.0
 * internal.h: what server.c offers to the routes. */
#ifndef SERVER_INTERNAL_H
#define SERVER_INTERNAL_H

#include "server/generate.h"
#include "server/http.h"
#include "server/queue.h"
#include "server/route.h"
#include "server/server.h"

/* The model's id in the API. */
const char *server_model(const struct server *server);
int64_t server_created(const struct server *server); /* seconds since 1970 */
/* NULL while it loads. The engine closes only when all that entered have left. */
const ob_engine *server_loaded(struct server *server);
/* What requests do not set. Only once it is loaded; strings live as long as the engine. */
ob_sampling server_sampling(struct server *server);
struct store *server_store(struct server *server);
const char *server_model_path(const struct server *server);
/* Since the start; `running`: answers that wait or run now. */
struct server_stats {
    uint64_t requests, failures, prompt_tokens, cached_tokens, predicted_tokens;
    double prompt_ms, predicted_ms;
    uint32_t running;
};
void server_get_stats(struct server *server, struct server_stats *out);
/* A request has ended. */
void server_count(struct server *server, const ob_timings *timings, bool failed);
/* Answers with what `make` makes of the request's JSON. */
void reply_with(struct server *server, struct http_exchange *x,
                ob_status (*make)(struct server *server, const json_t *request, json_t **out,
                                  ob_error *error));
/* What the request does not say of reasoning. */
void server_set_reasoning(const struct server *server, struct params *params);
void server_push(struct server *server, struct job *job);

/* A generation uses the engine between the two. NULL: the server stops. */
ob_engine *server_enter(struct server *server, struct generation *g);
void server_leave(struct server *server, struct generation *g);

/* Links of the list of generations that have entered. */
struct server_link {
    struct generation *next, **link;
};
struct server_link *generation_link(struct generation *g);

#endif
