/* SPDX-License-Identifier: Apache-2.0
 * conversation.c: see chat.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/chat.h"

ob_status conversation_check(const struct options *options, ob_error *error) {
    json_t *system = options->system ? json_string(options->system) : json_null();
    json_decref(system);
    if (system) return OB_OK;
    ob_status status = error_set(error, OB_ERR_ARGUMENT, "is not UTF-8");
    error_at(error, NULL, "system", OB_NO_OFFSET);
    return status;
}

ob_status conversation_open(const ob_engine *engine, const struct options *options,
                            struct conversation *out, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    const ob_error *why = info.chat_error;
    *out = (struct conversation){.plain = options->raw || why, .messages = json_array()};
    if (!out->messages) return error_memory(error, "a conversation", 1);
    if (options->raw || !why) return OB_OK;
    if (why->status != OB_ERR_NOT_FOUND) {
        *error = *why;
        return why->status;
    }
    if (options->system)
        cli_say("the model has no chat template: it continues the text, --system is not used");
    return OB_OK;
}

void conversation_close(struct conversation *conversation) {
    json_decref(conversation->messages);
    buf_free(&conversation->text);
    *conversation = (struct conversation){0};
}

void conversation_reset(struct conversation *conversation) {
    json_array_clear(conversation->messages);
    buf_clear(&conversation->text);
}

ob_status conversation_add(struct conversation *conversation, const char *role, struct str text,
                           ob_error *error) {
    if (conversation->plain) {
        buf_add(&conversation->text, text.p, text.n);
        return conversation->text.failed ? error_memory(error, "a conversation", text.n) : OB_OK;
    }
    json_t *content = json_stringn(text.p, text.n);
    if (!content && strcmp(role, "assistant") != 0)
        return error_set(error, OB_ERR_ARGUMENT,
                         "the prompt is not UTF-8 (--raw takes any bytes)");
    if (!content) content = cli_json_text(text);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);
    if (json_array_append_new(conversation->messages, message) != 0)
        return error_memory(error, "a conversation", text.n);
    return OB_OK;
}

ob_status conversation_add_answer(struct conversation *conversation, const struct answer *answer,
                                  ob_error *error) {
    struct str text = {answer->text.p ? answer->text.p : "", answer->text.n};
    struct str thought = {answer->thought.p ? answer->thought.p : "", answer->thought.n};
    ob_status status = conversation_add(conversation, "assistant", text, error);
    size_t n = json_array_size(conversation->messages);
    json_t *message = status == OB_OK && n ? json_array_get(conversation->messages, n - 1) : NULL;
    int failed = 0;
    if (message && thought.n)
        failed |= json_object_set_new(message, "reasoning_content", cli_json_text(thought));
    if (message && json_array_size(answer->calls))
        failed |= json_object_set(message, "tool_calls", answer->calls);
    return failed ? error_memory(error, "a conversation", text.n) : status;
}

void conversation_drop(struct conversation *conversation, size_t text_n) {
    if (conversation->plain) {
        if (!conversation->text.p) return;
        conversation->text.n -= text_n;
        conversation->text.p[conversation->text.n] = 0;
    } else {
        json_array_remove(conversation->messages, json_array_size(conversation->messages) - 1);
    }
}

static json_t *request_of(const struct conversation *conversation, const struct options *options) {
    json_t *messages = json_array();
    if (options->system) {
        json_t *system = json_pack("{s:s, s:s}", "role", "system", "content", options->system);
        json_array_append_new(messages, system);
    }
    json_array_extend(messages, conversation->messages);
    return json_pack("{s:o}", "messages", messages);
}

ob_status conversation_prompt(const ob_engine *engine, const struct conversation *conversation,
                              const struct options *options, struct prompt *out,
                              ob_error *error) {
    if (conversation->plain)
        return ob_tokenize(engine, conversation->text.p ? conversation->text.p : "",
                           conversation->text.n, true, options->special, &out->ids, error);
    json_t *request = request_of(conversation, options);
    ob_status status = request ? ob_chat_prompt_json(engine, request, &out->ids, &out->text,
                                                   &out->text_n, error)
                               : error_memory(error, "a chat request", 1);
    json_decref(request);
    return status;
}
