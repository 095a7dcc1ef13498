/* SPDX-License-Identifier: Apache-2.0
 * api_ps.c: Ollama's list of loaded models: the one there is, which stays. */
#include "server/internal.h"
#include "server/ollama.h"

static void handle(struct server *server, struct http_exchange *x) {
    ob_engine_info info;
    const char *name = server_model(server);
    ob_engine_get_info(server_loaded(server), &info);
    bool cpu = strncmp(info.device, "cpu", 3) == 0;
    json_int_t size = (json_int_t)info.weight_bytes;
    reply_json(x, REPLY_OK,
               json_pack("{s:[{s:s, s:s, s:I, s:I, s:I, s:o}]}", "models", "name", name, "model",
                         name, "size", size, "size_vram", cpu ? (json_int_t)0 : size,
                         "context_length", (json_int_t)info.context, "details",
                         ollama_details(&info)));
}

const struct route route_api_ps = {
    .method = "GET", .paths = {"/api/ps"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
