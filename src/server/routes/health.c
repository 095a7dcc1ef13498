/* SPDX-License-Identifier: Apache-2.0
 * health.c: whether the model is loaded. */
#include "server/internal.h"
#include "server/reply.h"

static void handle(struct server *server, struct http_exchange *x) {
    bool ready = server_loaded(server) != NULL;
    http_set_routine(x);
    reply_json(x, ready ? REPLY_OK : REPLY_UNAVAILABLE,
               json_pack("{s:s}", "status", ready ? "ok" : "loading"));
}

const struct route route_health = {
    .method = "GET", .paths = {"/health", "/v1/health"}, .handle = handle, .for_all = true,
};
