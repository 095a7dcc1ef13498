/* SPDX-License-Identifier: Apache-2.0
 * page.c: the chat page and its files. They hold nothing secret, so they need no key (the page asks
 * its reader for one and sends it with what it asks of the API). What a model writes is shown by
 * this page, so its headers allow it nothing but its own files and this server: no script, style or
 * picture from elsewhere, none written into the page, no frame around it. */
#include <stdlib.h>
#include <string.h>

#include "server/internal.h"
#include "server/reply.h"
#include "server/ui/files.h"

#define FILES "/ui/"
#define START "index.html"

/* A script cannot even make elements out of text: the page builds them one by one. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static const struct ui_file *find(const char *name) {
    for (size_t i = 0; i < ui_files_n; i++)
        if (strcmp(ui_files[i].name, name) == 0) return &ui_files[i];
    return NULL;
}

/* If-None-Match: tags separated by commas, perhaps marked as weak, or "*". */
static bool has_it(const struct http_exchange *x, const struct ui_file *file) {
    const char *tags = http_header(x, "If-None-Match");
    return tags && (strcmp(tags, "*") == 0 || strstr(tags, file->tag));
}

static void handle(struct server *server, struct http_exchange *x) {
    (void)server;
    const char *path = http_request(x)->path;
    const struct ui_file *file = find(path[1] ? path + strlen(FILES) : START);
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    if (!file) {
        reply_error(x, REPLY_NOT_FOUND, "the page has no such file");
        return;
    }
    http_set_header(x, "Content-Security-Policy", policy);
    http_set_header(x, "Referrer-Policy", "no-referrer");
    http_set_header(x, "Cross-Origin-Resource-Policy", "same-origin");
    http_set_header(x, "Cache-Control", "no-cache"); /* kept, but asked for by its tag */
    http_set_header(x, "ETag", file->tag);
    bool same = has_it(x, file);
    size_t n = same ? 0 : file->n;
    char *body = malloc(n + 1);
    if (body) memcpy(body, file->bytes, n);
    http_reply(x, same ? REPLY_NOT_MODIFIED : REPLY_OK, same ? NULL : file->type, body, n);
}

const struct route route_page = {
    .method = "GET",
    .paths = {"/", FILES},
    .handle = handle,
    .open = true,
};
