/* SPDX-License-Identifier: Apache-2.0
 * api_version.c: the version, for clients of Ollama's API. */
#include "server/internal.h"
#include "server/ollama.h"

static void handle(struct server *server, struct http_exchange *x) {
    (void)server;
    reply_json(x, REPLY_OK, json_pack("{s:s}", "version", OB_VERSION));
}

const struct route route_api_version = {
    .method = "GET", .paths = {"/api/version"}, .handle = handle, .shape = ollama_shape,
};
