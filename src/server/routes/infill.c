/* SPDX-License-Identifier: Apache-2.0
 * infill.c: llama-server's own way to fill the gap between two texts. */
#include "base/error.h"
#include "server/internal.h"
#include "server/llama.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/sse.h"

/* A field that must be a string; "" if it may be missing and is. */
static ob_status read_text(const json_t *request, const char *field, bool optional,
                           struct str *out, ob_error *error) {
    const json_t *value = json_object_get(request, field);
    *out = (struct str){"", 0};
    if (optional && (!value || json_is_null(value))) return OB_OK;
    if (!json_is_string(value)) return params_refuse(error, field, value, "a string");
    *out = (struct str){json_string_value(value), json_string_length(value)};
    return OB_OK;
}

static ob_status prompts(const ob_engine *engine, const json_t *request,
                         const struct params *params, struct opening *out, ob_error *error) {
    struct str prefix, suffix, behind;
    const json_t *extra = json_object_get(request, "input_extra");
    ob_tokens tokens = {0};
    (void)params;
    if (extra && !json_is_null(extra) && !json_is_array(extra))
        return params_refuse(error, "input_extra", extra, "an array");
    ob_status s = read_text(request, "input_prefix", false, &prefix, error);
    if (s == OB_OK) s = read_text(request, "input_suffix", false, &suffix, error);
    if (s == OB_OK) s = read_text(request, "prompt", true, &behind, error);
    if (s == OB_OK) s = prompt_infill(engine, prefix, suffix, behind, extra, &tokens, error);
    if (s == OB_OK) return prompt_add(out, &tokens, error);
    ob_tokens_free(&tokens);
    return s;
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "cmpl-", .type = SSE_TYPE, .ping = SSE_PING, .translate = llama_translate,
        .prompts = prompts, .whole = llama_whole, .piece = llama_piece, .ending = llama_ending,
        .failed = openai_failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_infill = {
    .method = "POST", .paths = {"/infill"}, .handle = handle, .needs_model = true,
};
