/* SPDX-License-Identifier: Apache-2.0
 * api_embed.c: vectors of texts, as Ollama gives them. */
#include "base/os.h"
#include "server/embed.h"
#include "server/internal.h"
#include "server/ollama.h"

static ob_status make(struct server *server, const json_t *request, json_t **out,
                      ob_error *error) {
    double start = os_seconds();
    struct embed embed = {0};
    json_t *list = json_array(), *copy = json_copy((json_t *)(uintptr_t)request);
    json_object_del(copy, "encoding_format"); /* nobody knows it here */
    ob_status s = embed_run(server_loaded(server), copy, &embed, error);
    for (size_t i = 0; s == OB_OK && i < embed.n; i++)
        json_array_append_new(list, embed_vector(&embed, i));
    *out = json_pack("{s:s, s:o, s:I, s:i, s:I}", "model", server_model(server), "embeddings",
                     list, "total_duration", (json_int_t)((os_seconds() - start) * 1e9),
                     "load_duration", 0, "prompt_eval_count", (json_int_t)embed.tokens);
    json_decref(copy);
    embed_free(&embed);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) { reply_with(server, x, make); }

const struct route route_api_embed = {
    .method = "POST", .paths = {"/api/embed"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
