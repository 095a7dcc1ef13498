/* SPDX-License-Identifier: Apache-2.0
 * generate.h: what the routes that generate text have in common: from the request's body to an
 * answer, whole or streamed. A route gives its wording. */
#ifndef SERVER_GENERATE_H
#define SERVER_GENERATE_H

#include "server/wording.h"

struct http_exchange;
struct generation;

/* Answers the exchange, now or later. On a worker thread. `wording` must stay. */
void generation_start(struct server *server, struct http_exchange *x,
                      const struct wording *wording);
/* Ends it at the next step; the server stops. */
void generation_stop(struct generation *g);
/* Some seconds have passed: a stream that is silent says that it lives. */
void generation_tick(struct generation *g);
/* How many answers of it go on. */
unsigned generation_answers(struct generation *g);

#endif
