/* SPDX-License-Identifier: Apache-2.0
 * route.h: the routes of routes.def, and who may ask: pure functions over a request. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include <jansson.h>

#include "server/http.h"
#include "server/reply.h"

struct server;

enum { ROUTE_PATHS = 4 };

struct route {
    const char *method;
    const char *paths[ROUTE_PATHS]; /* ends at NULL; "/x/": with something behind it */
    /* Answers, now or later. With `needs_model` it runs on a worker thread once the model is
     * loaded; otherwise on an I/O thread, at any time. */
    void (*handle)(struct server *server, struct http_exchange *x);
    bool needs_model;
    reply_shape *shape; /* of its errors; NULL: OpenAI's */
    bool for_all_pages; /* answers whatever the Origin */
};

#define ROUTE(name) extern const struct route route_##name;
#include "server/routes.def"
#undef ROUTE

/* HEAD counts as GET. NULL if there is none; *allowed is then a method of the path, or NULL. */
const struct route *route_find(const char *method, const char *path, const char **allowed);

/* How errors at this path are written; NULL: no route says. */
reply_shape *route_shape(const char *path);

/* Whether a browser's page could be behind this request that has no business here: a Host that is
 * not of this machine although the server listens to nobody else (DNS rebinding), or an Origin of
 * another site, unless the route (NULL: none) is for all. Returns the reason, or NULL. */
const char *route_refuses(const struct http_request *request, const struct route *route,
                          bool loopback_only);
/* An Origin that is this machine's or the server's own: it may read the answers. */
bool route_trusts_origin(const struct http_request *request);

#endif
