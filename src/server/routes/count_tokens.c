/* SPDX-License-Identifier: Apache-2.0
 * count_tokens.c: how many tokens the prompt of Anthropic's messages has. */
#include "server/anthropic.h"
#include "server/internal.h"
#include "server/prompt.h"

static ob_status count(struct server *server, const json_t *request, json_t **out,
                       ob_error *error) {
    json_t *chat = NULL;
    ob_sampling defaults = server_sampling(server);
    struct params params = {.n = 1};
    struct opening opening = {.begin = CHAT_BEGIN_CONTENT};
    ob_status s = anthropic_conversation(request, &chat, error);
    if (s == OB_OK) s = params_read(chat, &defaults, &params, error);
    if (s == OB_OK) s = prompt_chat(server_loaded(server), chat, &params, &opening, error);
    if (s == OB_OK) *out = json_pack("{s:I}", "input_tokens", (json_int_t)opening.prompt->n);
    opening_free(&opening);
    params_free(&params);
    json_decref(chat);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) { reply_with(server, x, count); }

const struct route route_count_tokens = {
    .method = "POST", .paths = {"/v1/messages/count_tokens"}, .handle = handle,
    .needs_model = true, .shape = anthropic_shape,
};
