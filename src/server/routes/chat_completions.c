/* SPDX-License-Identifier: Apache-2.0
 * chat_completions.c: an answer to a conversation. The model's template makes the prompt. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"

/* How an answer begins that continues the last message: `request` has passed the template. */
static enum chat_begin continued(const json_t *request, const struct chat_thought *style) {
    const json_t *how = json_object_get(request, "continue_final_message");
    const json_t *messages = json_object_get(request, "messages");
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    size_t parts = json_array_size(content);
    if (json_is_string(how) && strcmp(json_string_value(how), "content") != 0)
        return CHAT_BEGIN_REASONING;
    if (parts) content = json_object_get(json_array_get(content, parts - 1), "text");
    struct str text = {json_string_value(content), json_string_length(content)};
    return text.p && chat_thought_is_inside(style, text) ? CHAT_BEGIN_REASONING
                                                         : CHAT_BEGIN_CONTENT;
}

static ob_status prompt(const ob_engine *engine, const json_t *request, const struct params *params,
                        ob_tokens *out, struct opening *opening, ob_error *error) {
    json_t *copy = json_copy((json_t *)(uintptr_t)request);
    if (!copy) return error_memory(error, "the request", 0);
    if (params->drop_tools) json_object_del(copy, "tools");
    ob_status s = ob_chat_prompt_json(engine, copy, out, &opening->prompt, &opening->prompt_n,
                                      error);
    json_decref(copy);
    if (s != OB_OK) return s;
    opening->chat = true;
    if (!opening->style) return OB_OK;
    const json_t *how = json_object_get(request, "continue_final_message");
    if (json_is_true(how) || json_is_string(how))
        opening->begin = continued(request, opening->style);
    else if (chat_thought_is_open(opening->style,
                                  (struct str){opening->prompt, opening->prompt_n}))
        opening->begin = CHAT_BEGIN_REASONING;
    else
        opening->begin = CHAT_BEGIN_ANSWER;
    return OB_OK;
}

static json_t *answer(const struct said *said) {
    size_t calls = json_array_size(said->calls);
    json_t *content = calls && !said->text.n ? json_null() : clean_json(said->text);
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", content);
    if (said->thought.n)
        json_object_set_new(message, "reasoning_content", clean_json(said->thought));
    if (calls) json_object_set(message, "tool_calls", said->calls);
    return json_pack("{s:i, s:o, s:n, s:s}", "index", 0, "message", message, "logprobs",
                     "finish_reason", said->finish);
}

/* Takes delta over. */
static json_t *choice(json_t *delta, const char *finish) {
    return json_pack("{s:i, s:o, s:n, s:s?}", "index", 0, "delta", delta, "logprobs",
                     "finish_reason", finish);
}

static json_t *opening(void) {
    return choice(json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL);
}

static json_t *piece(const struct chat_event *event) {
    int index = (int)event->index;
    switch (event->kind) {
    case CHAT_TOOL:
        return choice(json_pack("{s:[{s:i, s:o, s:s, s:{s:o, s:s}}]}", "tool_calls", "index", index,
                                "id", clean_json(event->id), "type", "function", "function",
                                "name", clean_json(event->name), "arguments", ""), NULL);
    case CHAT_ARGUMENTS:
        return choice(json_pack("{s:[{s:i, s:{s:o}}]}", "tool_calls", "index", index, "function",
                                "arguments", clean_json(event->text)), NULL);
    case CHAT_REASONING:
        return choice(json_pack("{s:o}", "reasoning_content", clean_json(event->text)), NULL);
    default: return choice(json_pack("{s:o}", "content", clean_json(event->text)), NULL);
    }
}

static json_t *ending(const char *finish) { return choice(json_object(), finish); }

static json_t *logprobs(const ob_engine *engine, struct str records, bool after, size_t *offset) {
    (void)offset;
    return logprobs_chat(engine, records, after);
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "chatcmpl", .whole = "chat.completion", .chunk = "chat.completion.chunk",
        .prompt = prompt, .answer = answer, .opening = opening, .piece = piece, .ending = ending,
        .logprobs = logprobs,
    };
    generation_start(server, x, &wording);
}

const struct route route_chat_completions = {
    .method = "POST", .paths = {"/v1/chat/completions"}, .handle = handle, .needs_model = true,
};
