/* SPDX-License-Identifier: Apache-2.0
 * chat_completions.c: an answer to a conversation. The model's template makes the prompt. */
#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/sse.h"

#define CHUNK "chat.completion.chunk"

/* Of the tokens that were not told yet; NULL: there are none. */
static json_t *logprobs(const struct answer *a, struct str records) {
    return records.n ? logprobs_chat(a->engine, records, a->params->logprobs_after) : NULL;
}

static json_t *message(const struct said *said) {
    size_t calls = json_array_size(said->calls);
    json_t *content = calls && !said->text.n ? json_null() : clean_json(said->text);
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", content);
    if (said->thought.n)
        json_object_set_new(message, "reasoning_content", clean_json(said->thought));
    if (calls) json_object_set(message, "tool_calls", said->calls);
    return message;
}

static json_t *whole(struct answer *a, const struct said *said) {
    json_t *choices = json_array();
    for (unsigned i = 0; i < a->choices; i++) {
        json_t *choice = json_pack("{s:i, s:o, s:o?, s:s}", "index", (int)i, "message",
                                   message(&said[i]), "logprobs", logprobs(a, said[i].records),
                                   "finish_reason", said[i].finish);
        if (json_array_append_new(choices, choice) != 0) return json_decref(choices), NULL;
    }
    return openai_whole(a, "chat.completion", choices);
}

/* Takes delta over. */
static json_t *choice(unsigned index, json_t *delta, const char *finish) {
    return json_pack("{s:i, s:o, s:n, s:s?}", "index", (int)index, "delta", delta, "logprobs",
                     "finish_reason", finish);
}

static void begin(struct answer *a, struct buf *out) {
    for (unsigned i = 0; i < a->choices; i++)
        openai_chunk(a, CHUNK, choice(i, json_pack("{s:s, s:s}", "role", "assistant", "content",
                                                   ""), NULL), NULL, out);
}

static json_t *delta(const struct chat_event *event) {
    int index = (int)event->index;
    switch (event->kind) {
    case CHAT_TOOL:
        return json_pack("{s:[{s:i, s:o, s:s, s:{s:o, s:s}}]}", "tool_calls", "index", index, "id",
                         clean_json(event->id), "type", "function", "function", "name",
                         clean_json(event->name), "arguments", "");
    case CHAT_ARGUMENTS:
        return json_pack("{s:[{s:i, s:{s:o}}]}", "tool_calls", "index", index, "function",
                         "arguments", clean_json(event->text));
    case CHAT_REASONING:
        return json_pack("{s:o}", "reasoning_content", clean_json(event->text));
    default: return json_pack("{s:o}", "content", clean_json(event->text));
    }
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    openai_chunk(a, CHUNK, choice(p->index, delta(p->event), NULL), logprobs(a, p->records), out);
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    openai_ending(a, CHUNK, choice(said->index, json_object(), said->finish),
                  logprobs(a, said->records), out);
}

static void last(struct answer *a, struct buf *out) { openai_last(a, CHUNK, out); }

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "chatcmpl-", .type = SSE_TYPE, .ping = SSE_PING, .prompts = prompt_chat,
        .whole = whole, .begin = begin, .piece = piece, .ending = ending, .last = last,
        .failed = openai_failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_chat_completions = {
    .method = "POST", .paths = {"/v1/chat/completions", "/chat/completions"}, .handle = handle,
    .needs_model = true,
};
