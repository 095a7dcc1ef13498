/* SPDX-License-Identifier: Apache-2.0
 * api_generate.c: Ollama's answer to a prompt: one turn of a chat, unless it is `raw`, has a
 * `suffix`, or the model has no template. */
#include "base/error.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/ollama.h"
#include "server/prompt.h"
#include "server/sse.h"

static bool has(const json_t *request, const char *field) {
    const json_t *value = json_object_get(request, field);
    return value && !json_is_null(value);
}

static ob_status translate(struct server *server, const json_t *request, json_t **out,
                           ob_error *error) {
    static const struct params_neutral neutral[] = {
        {"context", "[]"}, {"images", "[]"}, {"template", "\"\""}};
    json_t *prompt = json_object_get(request, "prompt"), *list = json_array();
    json_t *system = json_object_get(request, "system");
    bool raw = false;
    (void)server;
    *out = json_pack("{s:o}", "messages", list);
    ob_status s = params_refuse_all(request, neutral, 3, error);
    if (s == OB_OK) s = ollama_common(request, *out, error);
    if (s == OB_OK) s = params_flag(request, "raw", false, &raw, error);
    if (s != OB_OK) return s;
    if (!json_is_string(prompt)) return params_refuse(error, "prompt", prompt, "a string");
    if (has(request, "system") && !json_is_string(system))
        return params_refuse(error, "system", system, "a string");
    json_object_set(*out, "prompt", prompt);
    json_object_set(*out, "suffix", json_object_get(request, "suffix"));
    json_object_set_new(*out, "raw", json_boolean(raw));
    if (json_string_length(system))
        json_array_append_new(list, json_pack("{s:s, s:O}", "role", "system", "content", system));
    json_array_append_new(list, json_pack("{s:s, s:O}", "role", "user", "content", prompt));
    return OB_OK;
}

static ob_status prompts(const ob_engine *engine, const json_t *request,
                         const struct params *params, struct opening *out, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    bool plain = info.chat_error && info.chat_error->status == OB_ERR_NOT_FOUND;
    if (plain || params->suffix.n || json_is_true(json_object_get(request, "raw")))
        return prompt_texts(engine, request, params, out, error);
    return prompt_chat(engine, request, params, out, error);
}

static json_t *whole(struct answer *a, const struct said *said) {
    json_t *line = ollama_line(a, true);
    json_object_set_new(line, "response", clean_json(said->text));
    if (said->thought.n) json_object_set_new(line, "thinking", clean_json(said->thought));
    ollama_end(a, said, line);
    return line;
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    json_t *line = ollama_line(a, false);
    bool thinks = p->event->kind == CHAT_REASONING;
    json_object_set_new(line, "response", json_string(""));
    json_object_set_new(line, thinks ? "thinking" : "response", clean_json(p->event->text));
    line_json(out, line);
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    line_json(out, whole(a, said));
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "gen-", .type = LINES_TYPE, .translate = translate, .fields = ollama_fields,
        .prompts = prompts, .whole = whole, .piece = piece, .ending = ending,
        .failed = ollama_failed,
    };
    if (!ollama_only_loads(server, x, "prompt")) generation_start(server, x, &wording);
}

const struct route route_api_generate = {
    .method = "POST", .paths = {"/api/generate"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
