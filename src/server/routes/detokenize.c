/* SPDX-License-Identifier: Apache-2.0
 * detokenize.c: the text of tokens. */
#include <stdlib.h>

#include "server/clean.h"
#include "server/internal.h"
#include "server/prompt.h"
#include "server/reply.h"

static ob_status detokenize(struct server *server, const json_t *request, json_t **out,
                            ob_error *error) {
    const ob_engine *engine = server_loaded(server);
    const json_t *list = json_object_get(request, "tokens");
    ob_tokens tokens = {0};
    char *text = NULL;
    size_t n = 0;
    if (!json_is_array(list))
        return params_refuse(error, "tokens", list, "an array of token ids");
    ob_status s = prompt_tokens(engine, list, false, false, "tokens", &tokens, error);
    if (s == OB_OK) s = ob_detokenize(engine, tokens.id, tokens.n, true, &text, &n, error);
    if (s == OB_OK) *out = json_pack("{s:o}", "content", clean_json((struct str){text, n}));
    free(text);
    ob_tokens_free(&tokens);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) {
    reply_with(server, x, detokenize);
}

const struct route route_detokenize = {
    .method = "POST", .paths = {"/detokenize"}, .handle = handle, .needs_model = true,
};
