/* SPDX-License-Identifier: Apache-2.0
 * tokenize.c: the tokens of a text. */
#include <stdlib.h>

#include "base/utf8.h"
#include "server/internal.h"
#include "server/prompt.h"
#include "server/reply.h"

/* Its text, or its bytes if they are no whole characters. */
static json_t *piece(const ob_engine *engine, int32_t id) {
    char *text;
    size_t n, at = 0;
    uint32_t code = 0;
    if (ob_detokenize(engine, &id, 1, true, &text, &n, NULL) != OB_OK) return NULL;
    while (at < n && code != UTF8_BAD) at += utf8_decode(text + at, n - at, &code);
    json_t *json = code == UTF8_BAD ? json_array() : json_stringn(text, n);
    for (size_t i = 0; code == UTF8_BAD && i < n; i++)
        json_array_append_new(json, json_integer((unsigned char)text[i]));
    free(text);
    return json_pack("{s:i, s:o}", "id", (int)id, "piece", json);
}

static ob_status tokenize(struct server *server, const json_t *request, json_t **out,
                          ob_error *error) {
    const ob_engine *engine = server_loaded(server);
    const json_t *content = json_object_get(request, "content");
    bool special, parse, pieces;
    ob_tokens tokens = {0};
    ob_status s = params_flag(request, "add_special", false, &special, error);
    if (s == OB_OK) s = params_flag(request, "parse_special", true, &parse, error);
    if (s == OB_OK) s = params_flag(request, "with_pieces", false, &pieces, error);
    if (s == OB_OK)
        s = prompt_tokens(engine, content, special, parse, "content", &tokens, error);
    json_t *list = json_array();
    for (size_t i = 0; s == OB_OK && i < tokens.n; i++)
        json_array_append_new(list, pieces ? piece(engine, tokens.id[i])
                                           : json_integer(tokens.id[i]));
    ob_tokens_free(&tokens);
    *out = json_pack("{s:o}", "tokens", list);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) {
    reply_with(server, x, tokenize);
}

const struct route route_tokenize = {
    .method = "POST", .paths = {"/tokenize"}, .handle = handle, .needs_model = true,
};
