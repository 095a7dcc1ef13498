/* SPDX-License-Identifier: Apache-2.0
 * access.h: who may ask: the Host and Origin of a request, and its key. Pure functions over a
 * request; an access is not changed once it is made, so any thread may use it. */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include "server/http.h"
#include "server/route.h"

struct access {
    char **key; /* a request needs one of them; none: no request does */
    size_t keys;
    char **origin; /* pages of these may use the server, too; "*": of any */
    size_t origins;
};

/* `keys` and `origins` are separated by commas, in key_lines there is a key a line, and lines that
 * begin with # do not count; NULL: none. */
ob_status access_init(struct access *access, const char *keys, const char *key_lines,
                      const char *origins, ob_error *error);
void access_free(struct access *access);

/* Whether a browser's page could be behind this request that has no business here: a Host that is
 * not of this machine although the server listens to nobody else (DNS rebinding), or an Origin of
 * another site, unless the route (NULL: none) is for all. Returns the reason, or NULL. */
const char *access_refuses(const struct access *access, const struct http_request *request,
                           const struct route *route, bool loopback_only);
/* An Origin that is this machine's, the server's own or one that was given: it may read the
 * answers. */
bool access_trusts_origin(const struct access *access, const struct http_request *request);
/* Whether `authorization` ("Bearer KEY") or `key` is a key; both may be NULL. How long it takes
 * does not tell how much of a key is right. */
bool access_has_key(const struct access *access, const char *authorization, const char *key);

#endif
