/* SPDX-License-Identifier: Apache-2.0
 * responses.c: OpenAI's responses: an answer of items (thought, message, calls). In a stream an
 * item is opened by the first part that belongs to it and closed by one that does not; a->items
 * holds those that were opened, a->text what the open one says. */
#include <stdio.h>

#include "server/clean.h"
#include "server/internal.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/responses.h"
#include "server/sse.h"
#include "server/store.h"

enum { NO_ITEM, REASONING, MESSAGE, CALL };

/* ---- items ----------------------------------------------------------------------------------- */

static json_t *part(int kind, json_t *text) {
    if (kind == REASONING) return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", text, "annotations",
                     "logprobs");
}

/* One that is open, without its content. */
static json_t *item(struct answer *a, int kind, const struct chat_event *event) {
    char id[64];
    static const char *const prefix[] = {"", "rs", "msg", "fc"};
    snprintf(id, sizeof id, "%s_%s_%u", prefix[kind], a->id + 5, a->parts++);
    if (kind == REASONING)
        return json_pack("{s:s, s:s, s:[], s:[]}", "type", "reasoning", "id", id, "summary",
                         "content");
    if (kind == MESSAGE)
        return json_pack("{s:s, s:s, s:s, s:s, s:[]}", "type", "message", "id", id, "status",
                         "in_progress", "role", "assistant", "content");
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "type", "function_call", "id", id,
                     "status", "in_progress", "call_id", clean_json(event->id), "name",
                     clean_json(event->name), "arguments", "");
}

static void complete(json_t *item, int kind, struct str text) {
    if (kind == CALL)
        json_object_set_new(item, "arguments", clean_json(text));
    else
        json_object_set_new(item, "content", json_pack("[o]", part(kind, clean_json(text))));
    if (kind != REASONING) json_object_set_new(item, "status", json_string("completed"));
}

/* What a later request goes on with: the conversation without the instructions, and the answer. */
static void keep(const struct answer *a) {
    json_t *messages = json_array(), *message = json_pack("{s:s}", "role", "assistant");
    json_t *calls = json_array();
    const json_t *all = json_object_get(a->request, "messages"), *instructions;
    size_t i;
    json_t *one;
    if (json_is_false(json_object_get(a->original, "store"))) goto end;
    instructions = json_object_get(a->original, "instructions");
    for (i = json_is_string(instructions) ? 1 : 0; i < json_array_size(all); i++)
        json_array_append(messages, json_array_get(all, i));
    json_object_set_new(message, "content", json_string(""));
    json_array_foreach(a->items, i, one) {
        const char *type = json_string_value(json_object_get(one, "type"));
        json_t *text = json_object_get(
            json_array_get(json_object_get(one, "content"), 0), "text");
        if (type[0] == 'f')
            json_array_append_new(calls,
                                  json_pack("{s:O, s:s, s:{s:O, s:O}}", "id",
                                            json_object_get(one, "call_id"), "type", "function",
                                            "function", "name", json_object_get(one, "name"),
                                            "arguments", json_object_get(one, "arguments")));
        else
            json_object_set(message, type[0] == 'm' ? "content" : "reasoning_content", text);
    }
    if (json_array_size(calls)) json_object_set(message, "tool_calls", calls);
    json_array_append(messages, message);
    store_put(server_store(a->server), a->id, messages);
end:
    json_decref(calls);
    json_decref(message);
    json_decref(messages);
}

/* ---- the response ---------------------------------------------------------------------------- */

static json_t *usage(const ob_timings *t) {
    json_int_t input = (json_int_t)t->cache_n + t->prompt_n;
    return json_pack("{s:I, s:{s:I}, s:I, s:{s:i}, s:I}", "input_tokens", input,
                     "input_tokens_details", "cached_tokens", (json_int_t)t->cache_n,
                     "output_tokens", (json_int_t)t->predicted_n, "output_tokens_details",
                     "reasoning_tokens", 0, "total_tokens", input + t->predicted_n);
}

/* `said` NULL: it goes on. */
static json_t *response(const struct answer *a, const struct said *said) {
    static const char *const echoed[] = {
        "instructions", "max_output_tokens", "metadata",    "previous_response_id", "reasoning",
        "temperature",  "text",              "tool_choice", "top_p",                "user"};
    bool cut = said && said->finish[0] == 'l';
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:n, s:n, s:O, s:b, s:b, s:s}", "id", a->id, "object",
        "response", "created_at", a->created, "status",
        !said ? "in_progress" : cut ? "incomplete" : "completed", "model",
        server_model(a->server), "error", "incomplete_details", "output", a->items,
        "parallel_tool_calls", !a->params->single_call, "store",
        !json_is_false(json_object_get(a->original, "store")), "truncation", "disabled");
    for (size_t i = 0; i < sizeof echoed / sizeof echoed[0]; i++) {
        json_t *value = json_object_get(a->original, echoed[i]);
        if (value) json_object_set(json, echoed[i], value);
        else json_object_set_new(json, echoed[i], json_null());
    }
    if (json_is_null(json_object_get(json, "tool_choice")))
        json_object_set_new(json, "tool_choice", json_string("auto"));
    json_t *tools = json_object_get(a->original, "tools");
    json_object_set_new(json, "tools", tools ? json_incref(tools) : json_array());
    if (cut)
        json_object_set_new(json, "incomplete_details",
                            json_pack("{s:s}", "reason", "max_output_tokens"));
    json_object_set_new(json, "usage", said ? usage(&a->timings) : json_null());
    if (said) json_object_set_new(json, "timings", timings_json(&a->timings));
    return json;
}

static void add_whole(struct answer *a, int kind, const struct chat_event *event,
                      struct str text) {
    json_t *one = item(a, kind, event);
    complete(one, kind, text);
    json_array_append_new(a->items, one);
}

static json_t *whole(struct answer *a, const struct said *said) {
    a->items = json_array();
    if (said->thought.n) add_whole(a, REASONING, NULL, said->thought);
    if (said->text.n || (!said->thought.n && !json_array_size(said->calls)))
        add_whole(a, MESSAGE, NULL, said->text);
    for (size_t i = 0; i < json_array_size(said->calls); i++) {
        const json_t *call = json_array_get(said->calls, i);
        const json_t *function = json_object_get(call, "function");
        struct chat_event event = {
            .id = str_of(json_string_value(json_object_get(call, "id"))),
            .name = str_of(json_string_value(json_object_get(function, "name")))};
        add_whole(a, CALL, &event,
                  str_of(json_string_value(json_object_get(function, "arguments"))));
    }
    keep(a);
    return response(a, said);
}

/* ---- a stream -------------------------------------------------------------------------------- */

/* Takes json over. */
static void put(struct answer *a, const char *name, json_t *json, struct buf *out) {
    json_object_set_new(json, "type", json_string(name));
    json_object_set_new(json, "sequence_number", json_integer(a->sequence++));
    sse_event(out, name, json);
}

static void begin(struct answer *a, struct buf *out) {
    a->items = json_array();
    put(a, "response.created", json_pack("{s:o}", "response", response(a, NULL)), out);
    put(a, "response.in_progress", json_pack("{s:o}", "response", response(a, NULL)), out);
}

static json_t *open_item(const struct answer *a) {
    return json_array_get(a->items, json_array_size(a->items) - 1);
}

/* What events about the open item have in common. */
static json_t *about(const struct answer *a) {
    json_t *json = json_pack("{s:I, s:O}", "output_index",
                             (json_int_t)json_array_size(a->items) - 1, "item_id",
                             json_object_get(open_item(a), "id"));
    if (a->part != CALL) json_object_set_new(json, "content_index", json_integer(0));
    return json;
}

static void put_about(struct answer *a, const char *name, const char *key, json_t *value,
                      struct buf *out) {
    json_t *json = about(a);
    json_object_set_new(json, key, value);
    if (a->part == MESSAGE && value && json_is_string(value))
        json_object_set_new(json, "logprobs", json_array());
    put(a, name, json, out);
}

static void put_item(struct answer *a, const char *name, struct buf *out) {
    put(a, name, json_pack("{s:I, s:O}", "output_index",
                           (json_int_t)json_array_size(a->items) - 1, "item", open_item(a)), out);
}

static void close_part(struct answer *a, struct buf *out) {
    struct str text = {a->text.p, a->text.n};
    if (a->part == NO_ITEM) return;
    if (a->text.failed) out->failed = true;
    complete(open_item(a), a->part, text);
    if (a->part == CALL) {
        put_about(a, "response.function_call_arguments.done", "arguments", clean_json(text), out);
    } else {
        put_about(a, a->part == MESSAGE ? "response.output_text.done"
                                        : "response.reasoning_text.done",
                  "text", clean_json(text), out);
        put_about(a, "response.content_part.done", "part", part(a->part, clean_json(text)), out);
    }
    put_item(a, "response.output_item.done", out);
    buf_clear(&a->text);
    a->part = NO_ITEM;
}

static void open_part(struct answer *a, int kind, const struct chat_event *event,
                      struct buf *out) {
    close_part(a, out);
    json_array_append_new(a->items, item(a, kind, event));
    a->part = kind;
    put_item(a, "response.output_item.added", out);
    if (kind != CALL)
        put_about(a, "response.content_part.added", "part", part(kind, json_string("")), out);
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    static const char *const names[] = {"", "response.reasoning_text.delta",
                                        "response.output_text.delta",
                                        "response.function_call_arguments.delta"};
    const struct chat_event *event = p->event;
    int kind = event->kind == CHAT_REASONING ? REASONING
               : event->kind == CHAT_CONTENT ? MESSAGE
                                             : CALL;
    if (event->kind == CHAT_TOOL || (kind != CALL && a->part != kind))
        open_part(a, kind, event, out);
    if (event->kind == CHAT_TOOL) return;
    buf_add(&a->text, event->text.p, event->text.n);
    put_about(a, names[kind], "delta", clean_json(event->text), out);
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    if (!a->parts) open_part(a, MESSAGE, NULL, out);
    close_part(a, out);
    keep(a);
    put(a, said->finish[0] == 'l' ? "response.incomplete" : "response.completed",
        json_pack("{s:o}", "response", response(a, said)), out);
}

static void failed(struct answer *a, json_t *error, struct buf *out) {
    json_object_update(error, json_object_get(error, "error"));
    put(a, "error", error, out);
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "resp_", .type = SSE_TYPE, .ping = SSE_PING, .translate = responses_translate,
        .fields = responses_fields, .prompts = prompt_chat, .whole = whole, .begin = begin,
        .piece = piece, .ending = ending, .failed = failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_responses = {
    .method = "POST", .paths = {"/v1/responses"}, .handle = handle, .needs_model = true,
};
