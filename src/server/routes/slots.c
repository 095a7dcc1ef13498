/* SPDX-License-Identifier: Apache-2.0
 * slots.c: the places for answers. Which place an answer has is the engine's affair: those that run
 * are listed first. */
#include "server/internal.h"
#include "server/reply.h"

static void handle(struct server *server, struct http_exchange *x) {
    ob_engine_info info;
    struct server_stats stats;
    server_get_stats(server, &stats);
    ob_engine_get_info(server_loaded(server), &info);
    json_t *list = json_array();
    for (uint32_t i = 0; i < info.parallel; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:b, s:b}", "id", (json_int_t)i, "n_ctx",
                                              (json_int_t)info.context, "speculative", 0,
                                              "is_processing", i < stats.running));
    reply_json(x, REPLY_OK, list);
}

const struct route route_slots = {
    .method = "GET", .paths = {"/slots"}, .handle = handle, .needs_model = true,
};
