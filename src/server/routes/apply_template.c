/* SPDX-License-Identifier: Apache-2.0
 * apply_template.c: the prompt that the model's template makes of a conversation. */
#include "server/clean.h"
#include "server/internal.h"
#include "server/prompt.h"
#include "server/reply.h"

static ob_status apply(struct server *server, const json_t *request, json_t **out,
                       ob_error *error) {
    struct params params = {.drop_tools = false};
    struct opening opening = {.begin = CHAT_BEGIN_CONTENT};
    ob_status s = prompt_chat(server_loaded(server), request, &params, &opening, error);
    if (s == OB_OK)
        *out = json_pack("{s:o}", "prompt",
                         clean_json((struct str){opening.text, opening.text_n}));
    opening_free(&opening);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) { reply_with(server, x, apply); }

const struct route route_apply_template = {
    .method = "POST", .paths = {"/apply-template"}, .handle = handle, .needs_model = true,
};
