/* SPDX-License-Identifier: Apache-2.0
 * route.c: see route.h. */
#include "server/route.h"

#include <strings.h>

#include "server/internal.h"

static const struct route *const routes[] = {
#define ROUTE(name) &route_##name,
#include "server/routes.def"
#undef ROUTE
};

static bool has_path(const struct route *route, const char *path) {
    for (size_t i = 0; i < ROUTE_PATHS && route->paths[i]; i++) {
        size_t n = strlen(route->paths[i]);
        bool open = route->paths[i][n - 1] == '/';
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

/* ---- who may ask ----------------------------------------------------------------------------- */

/* "name:port", "[v6]:port" without the port. */
static struct str without_port(struct str authority) {
    size_t n = 0;
    if (authority.n && authority.p[0] == '[')
        while (n < authority.n && authority.p[n] != ']') n++;
    while (n < authority.n && authority.p[n] != ':') n++;
    return (struct str){authority.p, n};
}

static bool same_ignoring_case(struct str a, const char *b) {
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

/* 127.x.x.x in digits alone: 127.example.org is somebody else's. */
static bool is_loopback_v4(struct str name) {
    unsigned number[4] = {0};
    size_t at = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t start = at;
        for (; at < name.n && name.p[at] >= '0' && name.p[at] <= '9' && at < start + 3; at++)
            number[i] = number[i] * 10 + (unsigned)(name.p[at] - '0');
        if (at == start || number[i] > 255) return false;
        if (i < 3 && (at == name.n || name.p[at++] != '.')) return false;
    }
    return at == name.n && number[0] == 127;
}

static bool is_loopback(struct str authority) {
    struct str name = without_port(authority);
    return same_ignoring_case(name, "localhost") || str_is(name, "[::1]") || is_loopback_v4(name);
}

bool route_trusts_origin(const struct http_request *request) {
    const char *authority = request->origin ? strstr(request->origin, "://") : NULL;
    if (!authority) return false; /* none, or "null": a page of unknown origin */
    authority += 3;
    return is_loopback(str_of(authority)) ||
           (request->host && strcasecmp(authority, request->host) == 0);
}

const char *route_refuses(const struct http_request *request, const struct route *route,
                          bool loopback_only) {
    if (loopback_only && request->host && !is_loopback(str_of(request->host)))
        return "the Host header names another machine than this";
    bool for_all = route && route->for_all_pages;
    if (!for_all && request->origin && !route_trusts_origin(request))
        return "pages of this Origin may not use the server";
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
