/* SPDX-License-Identifier: Apache-2.0
 * responses.c: see responses.h. Items become messages: a call joins the assistant's message before
 * it, a thought the one behind it. */
#include "server/responses.h"

#include <stdio.h>

#include "base/error.h"
#include "server/internal.h"
#include "server/store.h"

const char *const responses_fields[][2] = {
    {"max_completion_tokens", "max_output_tokens"},
    {"response_format.json_schema.schema", "text.format.schema"},
    {"response_format.json_schema", "text.format"},
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"},
    {"messages", "input"},
    {NULL, NULL},
};

/* NULL for null. */
static const json_t *get(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

static void put(json_t *out, const char *field, const json_t *value) {
    if (value) json_object_set(out, field, (json_t *)(uintptr_t)value);
}

/* ---- items ----------------------------------------------------------------------------------- */

static ob_status refuse(ob_error *error, size_t index, const char *field, const json_t *value,
                        const char *what) {
    char where[96];
    snprintf(where, sizeof where, "input[%zu]%s%s", index, field ? "." : "", field ? field : "");
    return params_refuse(error, where, value, what);
}

/* The texts of a message's parts; *out is new. */
static ob_status read_content(const json_t *content, size_t index, json_t **out, ob_error *error) {
    char field[48];
    *out = NULL;
    if (json_is_string(content)) {
        *out = json_incref((json_t *)(uintptr_t)content);
        return OB_OK;
    }
    if (!json_is_array(content))
        return refuse(error, index, "content", content, "a string or an array of parts");
    size_t n = json_array_size(content);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const json_t *part = json_array_get(content, i), *text = get(part, "text");
        const char *type = json_string_value(get(part, "type"));
        bool known = type && (strcmp(type, "input_text") == 0 ||
                              strcmp(type, "output_text") == 0 || strcmp(type, "text") == 0);
        snprintf(field, sizeof field, "content[%zu].%s", i, known ? "text" : "type");
        if (!known || !json_is_string(text)) {
            json_decref(list);
            return refuse(error, index, field, known ? text : get(part, "type"),
                          known ? "a string" : "\"input_text\" or \"output_text\"");
        }
        json_array_append_new(list, json_pack("{s:s, s:O}", "type", "text", "text", text));
    }
    if (n == 1) {
        *out = json_incref(json_object_get(json_array_get(list, 0), "text"));
        json_decref(list);
    } else {
        *out = list;
    }
    return OB_OK;
}

/* The assistant's message at the end, or a new one. */
static json_t *assistant(json_t *messages) {
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (role && strcmp(role, "assistant") == 0) return last;
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
    return json_array_get(messages, json_array_size(messages) - 1);
}

static ob_status add_call(const json_t *item, size_t index, json_t *messages, ob_error *error) {
    static const char *const strings[] = {"call_id", "name", "arguments"};
    for (size_t i = 0; i < 3; i++)
        if (!json_is_string(get(item, strings[i])))
            return refuse(error, index, strings[i], get(item, strings[i]), "a string");
    json_t *message = assistant(messages);
    json_t *calls = json_object_get(message, "tool_calls");
    if (!calls) {
        calls = json_array();
        json_object_set_new(message, "tool_calls", calls);
    }
    json_array_append_new(calls, json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", get(item, "call_id"),
                                           "type", "function", "function", "name",
                                           get(item, "name"), "arguments",
                                           get(item, "arguments")));
    return OB_OK;
}

/* A thought stands before the message it belongs to. */
static ob_status add_thought(const json_t *item, json_t *messages) {
    const json_t *content = get(item, "content"), *text = get(json_array_get(content, 0), "text");
    if (!json_is_string(text)) return OB_OK; /* hidden: nobody here could read it */
    json_array_append_new(messages, json_pack("{s:s, s:s, s:O}", "role", "assistant", "content",
                                              "", "reasoning_content", text));
    return OB_OK;
}

static ob_status add_message(const json_t *item, size_t index, json_t *messages, ob_error *error) {
    json_t *content;
    const char *role = json_string_value(get(item, "role"));
    if (!role) return refuse(error, index, "role", get(item, "role"), "a string");
    ob_status s = read_content(get(item, "content"), index, &content, error);
    if (s != OB_OK) return s;
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    if (strcmp(role, "assistant") == 0 && json_object_get(last, "reasoning_content") &&
        json_string_length(json_object_get(last, "content")) == 0 &&
        !json_object_get(last, "tool_calls"))
        json_object_set_new(last, "content", content);
    else
        json_array_append_new(messages,
                              json_pack("{s:s, s:o}", "role", role, "content", content));
    return OB_OK;
}

static ob_status add_item(const json_t *item, size_t index, json_t *messages, ob_error *error) {
    const json_t *kind = get(item, "type");
    const char *type = kind ? json_string_value(kind) : "message";
    if (!json_is_object(item)) return refuse(error, index, NULL, item, "an object");
    if (type && strcmp(type, "message") == 0) return add_message(item, index, messages, error);
    if (type && strcmp(type, "function_call") == 0) return add_call(item, index, messages, error);
    if (type && strcmp(type, "reasoning") == 0) return add_thought(item, messages);
    if (!type || strcmp(type, "function_call_output") != 0)
        return refuse(error, index, "type", kind,
                      "\"message\", \"function_call\", \"function_call_output\" or \"reasoning\"");
    json_t *content;
    const json_t *id = get(item, "call_id");
    if (!json_is_string(id)) return refuse(error, index, "call_id", id, "a string");
    if (!json_is_string(get(item, "output")))
        return refuse(error, index, "output", get(item, "output"), "a string");
    content = json_object_get(item, "output");
    json_array_append_new(messages, json_pack("{s:s, s:O, s:O}", "role", "tool", "tool_call_id",
                                              id, "content", content));
    return OB_OK;
}

static ob_status add_input(struct server *server, const json_t *request, json_t *messages,
                           ob_error *error) {
    const json_t *input = get(request, "input"), *instructions = get(request, "instructions");
    const json_t *before = get(request, "previous_response_id");
    if (instructions && !json_is_string(instructions))
        return params_refuse(error, "instructions", instructions, "a string");
    if (before && !json_is_string(before))
        return params_refuse(error, "previous_response_id", before, "a string");
    if (!json_is_string(input) && !json_is_array(input))
        return params_refuse(error, "input", input, "a string or an array of items");
    if (instructions)
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content",
                                                  instructions));
    if (before) {
        json_t *stored = store_get(server_store(server), json_string_value(before));
        if (!stored)
            return params_refuse(error, "previous_response_id", before,
                                 "the id of a response that is kept");
        json_array_extend(messages, stored);
        json_decref(stored);
    }
    if (json_is_string(input))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
    ob_status s = OB_OK;
    for (size_t i = 0; s == OB_OK && i < json_array_size(input); i++)
        s = add_item(json_array_get(input, i), i, messages, error);
    return s;
}

/* ---- tools and the rest ---------------------------------------------------------------------- */

static ob_status add_tools(const json_t *request, json_t *out, ob_error *error) {
    const json_t *tools = get(request, "tools"), *choice = get(request, "tool_choice");
    json_t *list = json_array();
    json_object_set_new(out, "tools", list);
    if (tools && !json_is_array(tools)) return params_refuse(error, "tools", tools, "an array");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        char where[48];
        json_t *tool = json_array_get(tools, i);
        const char *type = json_string_value(get(tool, "type"));
        bool function = type && strcmp(type, "function") == 0;
        snprintf(where, sizeof where, "tools[%zu].%s", i, function ? "name" : "type");
        if (!function) return params_refuse(error, where, get(tool, "type"), "\"function\"");
        if (!json_is_string(get(tool, "name")))
            return params_refuse(error, where, get(tool, "name"), "a string");
        json_t *copy = json_copy(tool);
        json_object_del(copy, "type");
        if (!get(tool, "parameters")) json_object_set_new(copy, "parameters", json_object());
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", copy));
    }
    if (json_is_object(choice) && json_is_string(get(choice, "name")))
        json_object_set_new(out, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name",
                                      get(choice, "name")));
    else
        put(out, "tool_choice", choice);
    return OB_OK;
}

static ob_status add_format(const json_t *request, json_t *out, ob_error *error) {
    const json_t *text = get(request, "text"), *format = get(text, "format");
    const char *type = json_string_value(get(format, "type"));
    if (text && !json_is_object(text)) return params_refuse(error, "text", text, "an object");
    if (type && strcmp(type, "json_schema") == 0)
        json_object_set_new(out, "response_format",
                            json_pack("{s:s, s:O}", "type", type, "json_schema", format));
    else
        put(out, "response_format", format);
    return OB_OK;
}

ob_status responses_translate(struct server *server, const json_t *request, json_t **out,
                              ob_error *error) {
    static const struct params_neutral neutral[] = {
        {"background", "false"}, {"conversation", "null"},       {"prompt", "null"},
        {"top_logprobs", "0"},   {"truncation", "\"disabled\""},
    };
    static const char *const same[] = {"model", "temperature", "top_p", "stream", "seed", "top_k",
                                       "min_p", "parallel_tool_calls", "chat_template_kwargs"};
    const json_t *reasoning = get(request, "reasoning");
    json_t *messages = json_array();
    bool store;
    *out = json_pack("{s:o}", "messages", messages);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        put(*out, same[i], get(request, same[i]));
    put(*out, "max_completion_tokens", get(request, "max_output_tokens"));
    ob_status s = params_refuse_all(request, neutral, sizeof neutral / sizeof neutral[0], error);
    if (s == OB_OK) s = params_flag(request, "store", true, &store, error);
    if (s == OB_OK && reasoning && !json_is_object(reasoning))
        s = params_refuse(error, "reasoning", reasoning, "an object");
    put(*out, "reasoning_effort", get(reasoning, "effort"));
    if (s == OB_OK) s = add_input(server, request, messages, error);
    if (s == OB_OK) s = add_tools(request, *out, error);
    return s == OB_OK ? add_format(request, *out, error) : s;
}
