/* SPDX-License-Identifier: Apache-2.0
 * anthropic.c: see anthropic.h. A message holds blocks; those that tell a tool's result become
 * messages of their own, a call and a thought fields of the assistant's message. */
#include "server/anthropic.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "server/clean.h"

const char *const anthropic_fields[][2] = {
    {"stop", "stop_sequences"},
    {"thinking_budget_tokens", "thinking.budget_tokens"},
    {NULL, NULL},
};

json_t *anthropic_shape(unsigned status, const char *type, const char *message, const char *field,
                        json_t *details) {
    const char *kind = status == REPLY_BAD_REQUEST  ? "invalid_request_error"
                       : status == REPLY_NO_KEY      ? "authentication_error"
                       : status == REPLY_FORBIDDEN   ? "permission_error"
                       : status == REPLY_NOT_FOUND   ? "not_found_error"
                       : status == REPLY_TOO_LONG    ? "request_too_large"
                       : status == REPLY_UNAVAILABLE ? "overloaded_error"
                       : status < REPLY_BROKEN       ? "invalid_request_error"
                                                     : "api_error";
    (void)type, (void)field;
    json_t *error = json_pack("{s:s, s:o}", "type", kind, "message", clean_json(str_of(message)));
    if (details && error) json_object_update(error, details);
    json_decref(details);
    return json_pack("{s:s, s:o}", "type", "error", "error", error);
}

/* NULL for null. */
static const json_t *get(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A conversation that is being translated. Where it stands is for errors. */
struct turn {
    json_t *messages; /* out */
    size_t index;
    bool assistant;
    json_t *parts, *calls; /* of the message that is being made */
    struct buf thought;
    ob_error *error;
};

static ob_status refuse(struct turn *t, size_t block, const char *field, const json_t *value,
                        const char *what) {
    char where[96];
    snprintf(where, sizeof where, "messages[%zu].content[%zu]%s%s", t->index, block,
             field ? "." : "", field ? field : "");
    return params_refuse(t->error, where, value, what);
}

static ob_status add_text(json_t *parts, const json_t *text, ob_error *error) {
    json_t *part = json_pack("{s:s, s:O}", "type", "text", "text", text);
    return json_array_append_new(parts, part) == 0 ? OB_OK : error_memory(error, "a message", 0);
}

/* Of one part its text, as most templates want it. Takes parts over. */
static json_t *content_of(json_t *parts) {
    if (json_array_size(parts) > 1) return parts;
    json_t *text = json_object_get(json_array_get(parts, 0), "text");
    text = text ? json_incref(text) : json_string("");
    json_decref(parts);
    return text;
}

static ob_status add_call(struct turn *t, size_t i, const json_t *block) {
    const json_t *id = get(block, "id"), *name = get(block, "name"), *input = get(block, "input");
    if (!t->assistant) return refuse(t, i, "type", get(block, "type"), "the assistant's");
    if (!json_is_string(id)) return refuse(t, i, "id", id, "a string");
    if (!json_is_string(name)) return refuse(t, i, "name", name, "a string");
    if (!json_is_object(input)) return refuse(t, i, "input", input, "an object");
    char *text = json_dumps(input, JSON_ENCODE_ANY);
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:s}}", "id", id, "type", "function", "function",
                             "name", name, "arguments", text);
    free(text);
    return json_array_append_new(t->calls, call) == 0 ? OB_OK
                                                      : error_memory(t->error, "a call", 0);
}

/* The text of a result: a string, or blocks of text. */
static ob_status add_result(struct turn *t, size_t i, const json_t *block) {
    const json_t *id = get(block, "tool_use_id"), *content = get(block, "content"), *one;
    struct buf text = BUF_INIT;
    if (t->assistant) return refuse(t, i, "type", get(block, "type"), "the user's");
    if (!json_is_string(id)) return refuse(t, i, "tool_use_id", id, "a string");
    if (content && !json_is_string(content) && !json_is_array(content))
        return refuse(t, i, "content", content, "a string or an array of text blocks");
    if (json_is_string(content))
        buf_add(&text, json_string_value(content), json_string_length(content));
    for (size_t k = 0; k < json_array_size(content); k++) {
        one = get(json_array_get(content, k), "text");
        if (!json_is_string(one)) {
            buf_free(&text);
            return refuse(t, i, "content", json_array_get(content, k), "blocks of text");
        }
        buf_add(&text, json_string_value(one), json_string_length(one));
    }
    json_t *message = json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id", id, "content",
                                clean_json((struct str){text.p, text.n}));
    bool bad = text.failed || json_array_append_new(t->messages, message) != 0;
    buf_free(&text);
    return bad ? error_memory(t->error, "a message", 0) : OB_OK;
}

static ob_status add_block(struct turn *t, size_t i, const json_t *block) {
    const char *type = json_string_value(get(block, "type"));
    const json_t *text;
    if (!json_is_object(block)) return refuse(t, i, NULL, block, "an object");
    if (!type) return refuse(t, i, "type", get(block, "type"), "a string");
    if (strcmp(type, "text") == 0) {
        text = get(block, "text");
        return json_is_string(text) ? add_text(t->parts, text, t->error)
                                    : refuse(t, i, "text", text, "a string");
    }
    if (strcmp(type, "thinking") == 0) {
        text = get(block, "thinking");
        if (!json_is_string(text)) return refuse(t, i, "thinking", text, "a string");
        buf_add(&t->thought, json_string_value(text), json_string_length(text));
        return OB_OK;
    }
    if (strcmp(type, "redacted_thinking") == 0) return OB_OK; /* nobody here could read it */
    if (strcmp(type, "tool_use") == 0) return add_call(t, i, block);
    if (strcmp(type, "tool_result") == 0) return add_result(t, i, block);
    return refuse(t, i, "type", get(block, "type"),
                  "\"text\", \"thinking\", \"tool_use\" or \"tool_result\"");
}

/* ---- messages -------------------------------------------------------------------------------- */

/* What is left of a message when its results have become their own. */
static ob_status end_message(struct turn *t) {
    bool bare = !json_array_size(t->parts) && !json_array_size(t->calls) && !t->thought.n;
    if (bare && !t->assistant) return OB_OK;
    json_t *message = json_pack("{s:s, s:o}", "role", t->assistant ? "assistant" : "user",
                                "content", content_of(json_incref(t->parts)));
    if (json_array_size(t->calls)) json_object_set(message, "tool_calls", t->calls);
    if (t->thought.n)
        json_object_set_new(message, "reasoning_content",
                            clean_json((struct str){t->thought.p, t->thought.n}));
    bool bad = t->thought.failed || json_array_append_new(t->messages, message) != 0;
    return bad ? error_memory(t->error, "a message", 0) : OB_OK;
}

static ob_status add_message(json_t *messages, size_t index, const json_t *message,
                             ob_error *error) {
    char where[64];
    const char *role = json_string_value(get(message, "role"));
    const json_t *content = get(message, "content");
    struct turn t = {.messages = messages, .index = index, .error = error};
    snprintf(where, sizeof where, "messages[%zu]", index);
    if (!json_is_object(message)) return params_refuse(error, where, message, "an object");
    t.assistant = role && strcmp(role, "assistant") == 0;
    snprintf(where, sizeof where, "messages[%zu].role", index);
    if (!t.assistant && (!role || strcmp(role, "user") != 0))
        return params_refuse(error, where, get(message, "role"), "\"user\" or \"assistant\"");
    snprintf(where, sizeof where, "messages[%zu].content", index);
    if (!json_is_string(content) && !json_is_array(content))
        return params_refuse(error, where, content, "a string or an array of blocks");
    t.parts = json_array();
    t.calls = json_array();
    ob_status s = json_is_string(content) ? add_text(t.parts, content, error) : OB_OK;
    for (size_t i = 0; s == OB_OK && i < json_array_size(content); i++)
        s = add_block(&t, i, json_array_get(content, i));
    if (s == OB_OK) s = end_message(&t);
    json_decref(t.parts);
    json_decref(t.calls);
    buf_free(&t.thought);
    return s;
}

static ob_status add_system(json_t *messages, const json_t *system, ob_error *error) {
    json_t *parts = json_array();
    ob_status s = OB_OK;
    if (json_is_string(system)) s = add_text(parts, system, error);
    else if (!json_is_array(system))
        s = params_refuse(error, "system", system, "a string or an array of text blocks");
    for (size_t i = 0; s == OB_OK && i < json_array_size(system); i++) {
        const json_t *text = get(json_array_get(system, i), "text");
        s = json_is_string(text) ? add_text(parts, text, error)
                                 : params_refuse(error, "system", json_array_get(system, i),
                                                 "blocks of text");
    }
    json_t *message = json_pack("{s:s, s:o}", "role", "system", "content",
                                content_of(parts));
    if (s != OB_OK) json_decref(message);
    else if (json_array_append_new(messages, message) != 0)
        return error_memory(error, "a message", 0);
    return s;
}

static ob_status add_messages(const json_t *request, json_t *out, ob_error *error) {
    const json_t *messages = get(request, "messages"), *system = get(request, "system");
    size_t n = json_array_size(messages);
    json_t *list = json_array();
    ob_status s = json_is_array(messages) && n
                      ? OB_OK
                      : params_refuse(error, "messages", messages, "an array of messages");
    if (s == OB_OK && system) s = add_system(list, system, error);
    for (size_t i = 0; s == OB_OK && i < n; i++)
        s = add_message(list, i, json_array_get(messages, i), error);
    const char *last = json_string_value(get(json_array_get(messages, n - 1), "role"));
    if (s == OB_OK && last && strcmp(last, "assistant") == 0)
        json_object_set_new(out, "continue_final_message", json_true());
    json_object_set_new(out, "messages", list);
    return s;
}

/* ---- tools and the rest ---------------------------------------------------------------------- */

static ob_status add_tools(const json_t *request, json_t *out, ob_error *error) {
    const json_t *tools = get(request, "tools");
    json_t *list = json_array();
    if (!tools) return json_decref(list), OB_OK;
    json_object_set_new(out, "tools", list);
    if (!json_is_array(tools)) return params_refuse(error, "tools", tools, "an array");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        char where[64];
        const json_t *tool = json_array_get(tools, i), *name = get(tool, "name");
        const json_t *about = get(tool, "description"), *schema = get(tool, "input_schema");
        snprintf(where, sizeof where, "tools[%zu].%s", i,
                 !json_is_string(name) ? "name" : "input_schema");
        if (!json_is_string(name)) return params_refuse(error, where, name, "a string");
        if (!json_is_object(schema)) return params_refuse(error, where, schema, "an object");
        json_t *function = json_pack("{s:O, s:O}", "name", name, "parameters", schema);
        if (json_is_string(about))
            json_object_set(function, "description", (json_t *)(uintptr_t)about);
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function",
                                              function));
    }
    return OB_OK;
}

static ob_status add_choice(const json_t *request, json_t *out, ob_error *error) {
    const json_t *choice = get(request, "tool_choice"), *name = get(choice, "name");
    const char *type = json_string_value(get(choice, "type"));
    bool single = false;
    if (!choice) return OB_OK;
    ob_status s = params_flag(choice, "disable_parallel_tool_use", false, &single, error);
    if (s != OB_OK) return s;
    if (single) json_object_set_new(out, "parallel_tool_calls", json_false());
    json_t *value = NULL;
    if (type && (strcmp(type, "auto") == 0 || strcmp(type, "none") == 0))
        value = json_string(type);
    else if (type && strcmp(type, "any") == 0)
        value = json_string("required");
    else if (type && strcmp(type, "tool") == 0 && json_is_string(name))
        value = json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name", name);
    else
        return params_refuse(error, "tool_choice", json_is_object(choice) ? get(choice, "type")
                                                                          : choice,
                             "an object whose type is \"auto\", \"any\", \"none\", or \"tool\" "
                             "with a name");
    json_object_set_new(out, "tool_choice", value);
    return OB_OK;
}

static ob_status add_thinking(const json_t *request, json_t *out, ob_error *error) {
    const json_t *thinking = get(request, "thinking"), *budget = get(thinking, "budget_tokens");
    const char *type = json_string_value(get(thinking, "type"));
    if (!thinking) return OB_OK;
    bool off = type && strcmp(type, "disabled") == 0;
    if (!off && (!type || (strcmp(type, "enabled") != 0 && strcmp(type, "adaptive") != 0)))
        return params_refuse(error, "thinking", json_is_object(thinking) ? get(thinking, "type")
                                                                         : thinking,
                             "an object whose type is \"enabled\", \"adaptive\" or \"disabled\"");
    json_object_set_new(out, "enable_thinking", json_boolean(!off));
    if (!off && budget)
        json_object_set(out, "thinking_budget_tokens", (json_t *)(uintptr_t)budget);
    return OB_OK;
}

ob_status anthropic_conversation(const json_t *request, json_t **out, ob_error *error) {
    static const char *const same[] = {"model",  "max_tokens", "stream", "temperature",
                                       "top_k",  "top_p",      "min_p",  "seed",
                                       "repeat_penalty", "chat_template_kwargs"};
    *out = json_object();
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        json_object_set(*out, same[i], json_object_get(request, same[i]));
    const json_t *stop = get(request, "stop_sequences");
    if (stop && !json_is_array(stop))
        return params_refuse(error, "stop_sequences", stop, "an array of strings");
    if (stop) json_object_set(*out, "stop", (json_t *)(uintptr_t)stop);
    ob_status s = add_messages(request, *out, error);
    if (s == OB_OK) s = add_tools(request, *out, error);
    if (s == OB_OK) s = add_choice(request, *out, error);
    return s == OB_OK ? add_thinking(request, *out, error) : s;
}

ob_status anthropic_translate(struct server *server, const json_t *request, json_t **out,
                              ob_error *error) {
    const json_t *max = get(request, "max_tokens");
    (void)server;
    if (!json_is_integer(max) || json_integer_value(max) < 1)
        return params_refuse(error, "max_tokens", max, "an integer, 1 or more");
    return anthropic_conversation(request, out, error);
}
