/* SPDX-License-Identifier: Apache-2.0
 * route.c: see route.h. */
#include "server/route.h"

#include <string.h>

#include "server/internal.h"

static const struct route *const routes[] = {
#define ROUTE(name) &route_##name,
#include "server/routes.def"
#undef ROUTE
};

static bool has_path(const struct route *route, const char *path) {
    for (size_t i = 0; i < ROUTE_PATHS && route->paths[i]; i++) {
        size_t n = strlen(route->paths[i]);
        bool open = n > 1 && route->paths[i][n - 1] == '/';
        if (strncmp(path, route->paths[i], n) == 0 && (path[n] != 0) == open) return true;
    }
    return false;
}

const struct route *route_find(const char *method, const char *path, const char **allowed) {
    *allowed = NULL;
    if (strcmp(method, "HEAD") == 0) method = "GET";
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!has_path(routes[i], path)) continue;
        if (strcmp(routes[i]->method, method) == 0) return routes[i];
        *allowed = routes[i]->method;
    }
    return NULL;
}

reply_shape *route_shape(const char *path) {
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (has_path(routes[i], path)) return routes[i]->shape;
    return NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

void reply_with(struct server *server, struct http_exchange *x,
                ob_status (*make)(struct server *server, const json_t *request, json_t **out,
                                  ob_error *error)) {
    json_t *request = NULL, *out = NULL;
    ob_error error = {0};
    ob_status s = params_parse(http_request(x)->body, &request, &error);
    if (s == OB_OK) s = make(server, request, &out, &error);
    json_decref(request);
    if (s == OB_OK) {
        reply_json(x, REPLY_OK, out);
        return;
    }
    json_decref(out);
    reply_ob_error(x, &error);
}
