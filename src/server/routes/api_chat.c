/* SPDX-License-Identifier: Apache-2.0
 * api_chat.c: Ollama's chat. A stream tells a call as a whole, when its arguments have come. */
#include "base/error.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/ollama.h"
#include "server/prompt.h"
#include "server/sse.h"

static ob_status translate(struct server *server, const json_t *request, json_t **out,
                           ob_error *error) {
    (void)server;
    *out = json_object();
    ob_status s = ollama_common(request, *out, error);
    return s == OB_OK ? ollama_messages(request, *out, error) : s;
}

/* Takes message over. */
static json_t *line(const struct answer *a, json_t *message, bool done) {
    json_t *line = ollama_line(a, done);
    json_object_set_new(message, "role", json_string("assistant"));
    if (!json_object_get(message, "content"))
        json_object_set_new(message, "content", json_string(""));
    json_object_set_new(line, "message", message);
    return line;
}

static json_t *whole(struct answer *a, const struct said *said) {
    json_t *message = json_pack("{s:o}", "content", clean_json(said->text)), *calls = json_array();
    if (said->thought.n) json_object_set_new(message, "thinking", clean_json(said->thought));
    for (size_t i = 0; i < json_array_size(said->calls); i++) {
        const json_t *function = json_object_get(json_array_get(said->calls, i), "function");
        const json_t *arguments = json_object_get(function, "arguments");
        json_array_append_new(
            calls, ollama_call(json_incref(json_object_get(function, "name")),
                               (struct str){json_string_value(arguments),
                                            json_string_length(arguments)}));
    }
    if (json_array_size(calls)) json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    json_t *json = line(a, message, true);
    ollama_end(a, said, json);
    return json;
}

/* The call whose arguments were kept, if there is one: its name is a->items. */
static void put_call(struct answer *a, struct buf *out) {
    if (!a->items) return;
    json_t *call = ollama_call(a->items, (struct str){a->text.p, a->text.n});
    a->items = NULL;
    if (a->text.failed) out->failed = true;
    buf_clear(&a->text);
    line_json(out, line(a, json_pack("{s:[o]}", "tool_calls", call), false));
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    const struct chat_event *event = p->event;
    if (event->kind == CHAT_ARGUMENTS) {
        buf_add(&a->text, event->text.p, event->text.n);
        return;
    }
    put_call(a, out);
    if (event->kind == CHAT_TOOL) a->items = clean_json(event->name);
    else
        line_json(out, line(a, json_pack("{s:o}", event->kind == CHAT_REASONING ? "thinking"
                                                                                : "content",
                                         clean_json(event->text)), false));
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    put_call(a, out);
    json_t *json = line(a, json_object(), true);
    ollama_end(a, said, json);
    line_json(out, json);
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "chat-", .type = LINES_TYPE, .translate = translate, .fields = ollama_fields,
        .prompts = prompt_chat, .whole = whole, .piece = piece, .ending = ending,
        .failed = ollama_failed,
    };
    if (!ollama_only_loads(server, x, "messages")) generation_start(server, x, &wording);
}

const struct route route_api_chat = {
    .method = "POST", .paths = {"/api/chat"}, .handle = handle, .needs_model = true,
    .shape = ollama_shape,
};
