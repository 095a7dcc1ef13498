/* SPDX-License-Identifier: Apache-2.0
 * props.c: what the server is and does with requests that do not say. */
#include "server/internal.h"
#include "server/reply.h"

static void handle(struct server *server, struct http_exchange *x) {
    ob_engine_info info;
    ob_sampling s = server_sampling(server);
    ob_engine_get_info(server_loaded(server), &info);
    json_t *params = json_pack(
        "{s:f, s:i, s:f, s:f, s:f, s:f, s:f}", "temperature", (double)s.temperature, "top_k",
        (int)s.top_k, "top_p", (double)s.top_p, "min_p", (double)s.min_p, "repeat_penalty",
        (double)s.repeat_penalty, "presence_penalty", (double)s.presence_penalty,
        "frequency_penalty", (double)s.frequency_penalty);
    const char *path = server_model_path(server);
    reply_json(x, REPLY_OK,
               json_pack("{s:{s:I, s:o}, s:i, s:s, s:s, s:s, s:{s:b, s:b}, s:b, s:s?}",
                         "default_generation_settings", "n_ctx", (json_int_t)info.context,
                         "params", params, "total_slots", (int)info.parallel, "model_alias",
                         server_model(server), "model_path", path, "build_info",
                         "1bit-" OB_VERSION, "modalities", "vision", 0, "audio", 0, "is_sleeping",
                         0, "tool_format", info.tool_format));
}

const struct route route_props = {
    .method = "GET", .paths = {"/props"}, .handle = handle, .needs_model = true,
};
