/* SPDX-License-Identifier: Apache-2.0
 * api_tags.c: Ollama's list of models, which is one. */
#include "server/internal.h"
#include "server/ollama.h"

static void handle(struct server *server, struct http_exchange *x) {
    ob_engine_info info;
    const char *name = server_model(server);
    ob_engine_get_info(server_loaded(server), &info);
    reply_json(x, REPLY_OK,
               json_pack("{s:[{s:s, s:s, s:o, s:I, s:o}]}", "models", "name", name, "model", name,
                         "modified_at", ollama_time(server_created(server)), "size",
                         (json_int_t)info.weight_bytes, "details", ollama_details(&info)));
}

const struct route route_api_tags = {
    .method = "GET", .paths = {"/api/tags"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
