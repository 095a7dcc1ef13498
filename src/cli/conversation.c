/* SPDX-License-Identifier: Apache-2.0
 * conversation.c: see chat.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/chat.h"

/* A template is there if it renders the smallest chat. */
static ob_status has_template(const ob_engine *engine, bool *out, ob_error *error) {
    static const char smallest[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}";
    ob_tokens ids = {0};
    ob_status status = ob_chat_prompt(engine, smallest, strlen(smallest), &ids, NULL, NULL, error);
    ob_tokens_free(&ids);
    *out = status != OB_ERR_NOT_FOUND;
    return status == OB_ERR_NOT_FOUND ? OB_OK : status;
}

ob_status conversation_open(const ob_engine *engine, const struct options *options,
                            struct conversation *out, ob_error *error) {
    *out = (struct conversation){.plain = options->raw, .messages = json_array()};
    if (!out->messages) return error_memory(error, "a conversation", 1);
    if (out->plain) return OB_OK;
    bool found = false;
    ob_status status = has_template(engine, &found, error);
    out->plain = !found;
    if (status == OB_OK && out->plain && options->system)
        cli_say("the model has no chat template: it continues the text, --system is not used");
    return status;
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
        return error_set(error, OB_ERR_ARGUMENT, "the %s is not UTF-8 (--raw takes any bytes)",
                         strcmp(role, "user") == 0 ? "prompt" : "system message");
    if (!content) content = cli_json_text(text);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);
    if (json_array_append_new(conversation->messages, message) != 0)
        return error_memory(error, "a conversation", text.n);
    return OB_OK;
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
        json_t *system = json_pack("{s:s, s:o}", "role", "system", "content",
                                   cli_json_text(str_of(options->system)));
        json_array_append_new(messages, system);
    }
    json_array_extend(messages, conversation->messages);
    return json_pack("{s:o}", "messages", messages);
}

ob_status conversation_prompt(const ob_engine *engine, const struct conversation *conversation,
                              const struct options *options, ob_tokens *out, ob_error *error) {
    if (conversation->plain)
        return ob_tokenize(engine, conversation->text.p ? conversation->text.p : "",
                           conversation->text.n, true, options->special, out, error);
    json_t *request = request_of(conversation, options);
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    ob_status status = text ? ob_chat_prompt(engine, text, strlen(text), out, NULL, NULL, error)
                            : error_memory(error, "a chat request", 1);
    free(text);
    json_decref(request);
    return status;
}
