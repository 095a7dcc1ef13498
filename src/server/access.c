/* SPDX-License-Identifier: Apache-2.0
 * access.c: see access.h. */
#include "server/access.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

/* ---- lists ----------------------------------------------------------------------------------- */

static bool add(char ***list, size_t *n, struct str text) {
    char **more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more) return false;
    *list = more;
    more[*n] = strndup(text.p, text.n);
    return more[*n] && ++*n;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static struct str trimmed(struct str s) {
    while (s.n && is_blank(s.p[0])) s.p++, s.n--;
    while (s.n && is_blank(s.p[s.n - 1])) s.n--;
    return s;
}

/* The parts of `text` that are not empty. */
static bool add_parts(char ***list, size_t *n, const char *text, const char *end, char comment) {
    while (text && *text) {
        size_t to = strcspn(text, end);
        struct str part = trimmed((struct str){text, to});
        if (part.n && part.p[0] != comment && !add(list, n, part)) return false;
        text += to + (text[to] != 0);
    }
    return true;
}

ob_status access_init(struct access *a, const char *keys, const char *key_lines,
                      const char *origins, ob_error *error) {
    *a = (struct access){0};
    if (!add_parts(&a->key, &a->keys, keys, ",", 0) ||
        !add_parts(&a->key, &a->keys, key_lines, "\n", '#') ||
        !add_parts(&a->origin, &a->origins, origins, ",", 0))
        return error_memory(error, "keys", 0);
    if ((keys || key_lines) && a->keys == 0) { /* a server open to all is not what is meant */
        ob_status s = error_set(error, OB_ERR_ARGUMENT, "there is no key in it");
        error_at(error, NULL, keys ? "api-key" : "api-key-file", OB_NO_OFFSET);
        return s;
    }
    return OB_OK;
}

static void free_list(char **list, size_t n) {
    for (size_t i = 0; i < n; i++) free(list[i]);
    free(list);
}

void access_free(struct access *a) {
    free_list(a->key, a->keys);
    free_list(a->origin, a->origins);
    *a = (struct access){0};
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Goes through all of `given`, whatever it finds. */
static bool equal(struct str given, const char *key) {
    size_t n = strlen(key);
    unsigned char differ = given.n != n;
    for (size_t i = 0; i < given.n; i++)
        differ |= (unsigned char)(given.p[i] ^ key[n ? i % n : 0]);
    return !differ;
}

static bool is_key(const struct access *a, struct str given) {
    bool found = false;
    for (size_t i = 0; i < a->keys; i++) found |= equal(given, a->key[i]);
    return found;
}

bool access_has_key(const struct access *a, const char *authorization, const char *key) {
    static const char scheme[] = "Bearer ";
    struct str bearer = {0};
    if (authorization && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0)
        bearer = trimmed(str_of(authorization + sizeof scheme - 1));
    bool found = a->keys == 0;
    found |= is_key(a, bearer);
    found |= is_key(a, key ? trimmed(str_of(key)) : (struct str){0});
    return found;
}

/* ---- Host and Origin ------------------------------------------------------------------------- */

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

static bool is_given(const struct access *a, const char *origin) {
    for (size_t i = 0; i < a->origins; i++)
        if (strcmp(a->origin[i], "*") == 0 || strcasecmp(a->origin[i], origin) == 0) return true;
    return false;
}

bool access_trusts_origin(const struct access *a, const struct http_request *request) {
    if (!request->origin) return false;
    if (is_given(a, request->origin)) return true;
    const char *authority = strstr(request->origin, "://");
    if (!authority) return false; /* "null": a page of unknown origin */
    authority += 3;
    return is_loopback(str_of(authority)) ||
           (request->host && strcasecmp(authority, request->host) == 0);
}

const char *access_refuses(const struct access *a, const struct http_request *request,
                           const struct route *route, bool loopback_only) {
    if (loopback_only && request->host && !is_loopback(str_of(request->host)))
        return "the Host header names another machine than this";
    bool for_all = route && route->for_all;
    if (!for_all && request->origin && !access_trusts_origin(a, request))
        return "pages of this Origin may not use the server";
    return NULL;
}
