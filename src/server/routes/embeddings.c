/* SPDX-License-Identifier: Apache-2.0
 * embeddings.c: vectors of texts. */
#include <stdio.h>

#include "server/embed.h"
#include "server/internal.h"
#include "server/reply.h"

static json_t *answer(struct server *server, const struct embed *r) {
    json_t *data = json_array();
    for (size_t i = 0; i < r->n; i++) {
        json_array_append_new(data, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                              (json_int_t)i, "embedding", embed_vector(r, i)));
    }
    return json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model",
                     server_model(server), "usage", "prompt_tokens", (json_int_t)r->tokens,
                     "total_tokens", (json_int_t)r->tokens);
}

static void handle(struct server *server, struct http_exchange *x) {
    json_t *json;
    ob_error error = {0};
    struct embed embed = {0};
    char words[96];
    ob_status s = params_parse(http_request(x)->body, &json, &error);
    if (s == OB_OK) s = embed_run(server_loaded(server), json, &embed, &error);
    json_decref(json);
    snprintf(words, sizeof words, "%zu text%s, %zu tokens", embed.n,
             embed.n == 1 ? "" : "s", embed.tokens);
    http_note(x, s == OB_OK ? 0 : reply_status_of(&error), words);
    if (s == OB_OK) reply_json(x, REPLY_OK, answer(server, &embed));
    else reply_ob_error(x, &error);
    embed_free(&embed);
}

const struct route route_embeddings = {
    .method = "POST", .paths = {"/v1/embeddings"}, .handle = handle, .needs_model = true,
};
