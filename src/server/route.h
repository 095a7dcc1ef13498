/* SPDX-License-Identifier: Apache-2.0
 * route.h: the routes of routes.def. Who may ask is access.h's. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include <jansson.h>

#include "server/http.h"
#include "server/reply.h"

struct server;

enum { ROUTE_PATHS = 4 };

struct route {
    const char *method;
    const char *paths[ROUTE_PATHS]; /* ends at NULL; "/x/": with something behind it, not "/" */
    /* Answers, now or later. With `needs_model` it runs on a worker thread once the model is
     * loaded; otherwise on an I/O thread, at any time. */
    void (*handle)(struct server *server, struct http_exchange *x);
    bool needs_model;
    reply_shape *shape; /* of its errors; NULL: OpenAI's */
    bool open;    /* answers without a key */
    bool for_all; /* the same, and whatever the Origin */
};

#define ROUTE(name) extern const struct route route_##name;
#include "server/routes.def"
#undef ROUTE

/* HEAD counts as GET. NULL if there is none; *allowed is then a method of the path, or NULL. */
const struct route *route_find(const char *method, const char *path, const char **allowed);

/* How errors at this path are written; NULL: no route says. */
reply_shape *route_shape(const char *path);

#endif
