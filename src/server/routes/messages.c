/* SPDX-License-Identifier: Apache-2.0
 * messages.c: Anthropic's messages: an answer of blocks. In a stream a block is opened by the first
 * part that belongs to it and closed by one that does not. */
#include "server/anthropic.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/sse.h"

enum { NO_BLOCK, THINKING, TEXT, TOOL };

static json_t *usage(const struct answer *a) {
    const ob_timings *t = &a->timings;
    bool begun = t->cache_n + t->prompt_n > 0;
    return json_pack("{s:I, s:i, s:I, s:I}", "input_tokens",
                     begun ? (json_int_t)t->prompt_n : (json_int_t)a->prompt_tokens,
                     "cache_creation_input_tokens", 0, "cache_read_input_tokens",
                     (json_int_t)t->cache_n, "output_tokens", (json_int_t)t->predicted_n);
}

static const char *reason(const struct said *said) {
    if (said->finish[0] == 'l') return "max_tokens";
    if (said->finish[0] == 't') return "tool_use";
    return said->stop ? "stop_sequence" : "end_turn";
}

/* ---- whole ----------------------------------------------------------------------------------- */

/* The arguments of a call as an object. */
static json_t *input_of(const json_t *function) {
    const json_t *text = json_object_get(function, "arguments");
    json_t *input = json_loads(json_string_value(text), 0, NULL);
    if (json_is_object(input)) return input;
    json_decref(input);
    return json_pack("{s:O}", "input", text);
}

static json_t *whole(struct answer *a, const struct said *said) {
    json_t *content = json_array();
    size_t calls = json_array_size(said->calls);
    if (said->thought.n)
        json_array_append_new(content,
                              json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking",
                                        clean_json(said->thought), "signature", ""));
    if (said->text.n || (!calls && !said->thought.n))
        json_array_append_new(content, json_pack("{s:s, s:o}", "type", "text", "text",
                                                 clean_json(said->text)));
    for (size_t i = 0; i < calls; i++) {
        const json_t *call = json_array_get(said->calls, i);
        const json_t *function = json_object_get(call, "function");
        json_array_append_new(content,
                              json_pack("{s:s, s:O, s:O, s:o}", "type", "tool_use", "id",
                                        json_object_get(call, "id"), "name",
                                        json_object_get(function, "name"), "input",
                                        input_of(function)));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s?, s:o, s:o}", "id", a->id, "type",
                     "message", "role", "assistant", "model", server_model(a->server), "content",
                     content, "stop_reason", reason(said), "stop_sequence", said->stop, "usage",
                     usage(a), "timings", timings_json(&a->timings));
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void begin(struct answer *a, struct buf *out) {
    json_t *message = json_pack("{s:s, s:s, s:s, s:s, s:[], s:n, s:n, s:o}", "id", a->id, "type",
                                "message", "role", "assistant", "model", server_model(a->server),
                                "content", "stop_reason", "stop_sequence", "usage", usage(a));
    sse_event(out, "message_start",
              json_pack("{s:s, s:o}", "type", "message_start", "message", message));
    sse_event(out, "ping", json_pack("{s:s}", "type", "ping"));
}

static void delta(struct answer *a, json_t *delta, struct buf *out) {
    sse_event(out, "content_block_delta",
              json_pack("{s:s, s:i, s:o}", "type", "content_block_delta", "index",
                        (int)a->parts - 1, "delta", delta));
}

static void close_block(struct answer *a, struct buf *out) {
    if (a->part == NO_BLOCK) return;
    sse_event(out, "content_block_stop",
              json_pack("{s:s, s:i}", "type", "content_block_stop", "index", (int)a->parts - 1));
    a->part = NO_BLOCK;
}

/* Takes block over. */
static void open_block(struct answer *a, int part, json_t *block, struct buf *out) {
    close_block(a, out);
    a->part = part;
    sse_event(out, "content_block_start",
              json_pack("{s:s, s:i, s:o}", "type", "content_block_start", "index",
                        (int)a->parts++, "content_block", block));
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    const struct chat_event *event = p->event;
    switch (event->kind) {
    case CHAT_TOOL:
        open_block(a, TOOL, json_pack("{s:s, s:o, s:o, s:{}}", "type", "tool_use", "id",
                                      clean_json(event->id), "name", clean_json(event->name),
                                      "input"), out);
        break;
    case CHAT_ARGUMENTS:
        delta(a, json_pack("{s:s, s:o}", "type", "input_json_delta", "partial_json",
                           clean_json(event->text)), out);
        break;
    case CHAT_REASONING:
        if (a->part != THINKING)
            open_block(a, THINKING, json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking",
                                              "", "signature", ""), out);
        delta(a, json_pack("{s:s, s:o}", "type", "thinking_delta", "thinking",
                           clean_json(event->text)), out);
        break;
    default:
        if (a->part != TEXT)
            open_block(a, TEXT, json_pack("{s:s, s:s}", "type", "text", "text", ""), out);
        delta(a, json_pack("{s:s, s:o}", "type", "text_delta", "text", clean_json(event->text)),
              out);
    }
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    if (!a->parts) open_block(a, TEXT, json_pack("{s:s, s:s}", "type", "text", "text", ""), out);
    close_block(a, out);
    sse_event(out, "message_delta",
              json_pack("{s:s, s:{s:s, s:s?}, s:o, s:o}", "type", "message_delta", "delta",
                        "stop_reason", reason(said), "stop_sequence", said->stop, "usage",
                        usage(a), "timings", timings_json(&a->timings)));
    sse_event(out, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static void failed(struct answer *a, json_t *error, struct buf *out) {
    (void)a;
    sse_event(out, "error", error);
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "msg_", .type = SSE_TYPE, .ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        .translate = anthropic_translate, .fields = anthropic_fields, .prompts = prompt_chat,
        .whole = whole, .begin = begin, .piece = piece, .ending = ending, .failed = failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_messages = {
    .method = "POST", .paths = {"/v1/messages"}, .handle = handle, .needs_model = true,
    .shape = anthropic_shape,
};
