/* SPDX-License-Identifier: Apache-2.0
 * chat_choice.c: which calls a request asks for; see chat_grammar.h. */
#include "base/error.h"
#include "text/chat_grammar.h"

static const json_t *get(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

static ob_status refuse(ob_error *error, const char *field, const char *what) {
    error_set(error, OB_ERR_ARGUMENT, "%s", what);
    error_at(error, NULL, field, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

const json_t *chat_choice_function(const json_t *tool) {
    const json_t *function = get(tool, "function");
    return json_is_object(function) ? function : tool;
}

static ob_status read_word(const char *word, struct chat_choice *out, ob_error *error) {
    if (strcmp(word, "auto") == 0) out->kind = CHAT_CHOICE_AUTO;
    else if (strcmp(word, "none") == 0) out->kind = CHAT_CHOICE_NONE;
    else if (strcmp(word, "required") == 0 || strcmp(word, "any") == 0)
        out->kind = CHAT_CHOICE_REQUIRED;
    else
        return refuse(error, "tool_choice", "must be \"auto\", \"none\", \"required\" or an object "
                                            "that names a function");
    return OB_OK;
}

/* {"type": "function", "function": {"name": ..}}, {"type": "function" or "tool", "name": ..}, or
 * {"type": one of the words}. */
static ob_status read_object(const json_t *choice, struct chat_choice *out, ob_error *error) {
    const char *type = json_string_value(get(choice, "type"));
    const json_t *name = get(chat_choice_function(choice), "name");
    bool names = !type || strcmp(type, "function") == 0 || strcmp(type, "tool") == 0;
    const json_t *alone = get(choice, "disable_parallel_tool_use");
    if (alone && !json_is_boolean(alone))
        return refuse(error, "tool_choice.disable_parallel_tool_use", "must be true or false");
    out->single |= json_is_true(alone);
    if (!names) return read_word(type, out, error);
    if (json_string_length(name) == 0)
        return refuse(error, "tool_choice", "must be \"auto\", \"none\", \"required\" or an object "
                                            "that names a function");
    out->kind = CHAT_CHOICE_REQUIRED;
    out->name = (struct str){json_string_value(name), json_string_length(name)};
    return OB_OK;
}

static bool has_tool(const json_t *tools, struct str name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *one =
            json_string_value(get(chat_choice_function(json_array_get(tools, i)), "name"));
        if (one && str_is(name, one)) return true;
    }
    return false;
}

ob_status chat_choice_read(const json_t *request, struct chat_choice *out, ob_error *error) {
    const json_t *tools = get(request, "tools"), *choice = get(request, "tool_choice");
    const json_t *parallel = get(request, "parallel_tool_calls");
    ob_status s = OB_OK;
    *out = (struct chat_choice){.single = json_is_false(parallel)};
    if (parallel && !json_is_boolean(parallel))
        return refuse(error, "parallel_tool_calls", "must be true or false");
    if (json_is_string(choice)) s = read_word(json_string_value(choice), out, error);
    else if (json_is_object(choice)) s = read_object(choice, out, error);
    else if (choice) s = read_word("", out, error);
    if (s != OB_OK) return s;
    if (out->kind == CHAT_CHOICE_REQUIRED && json_array_size(tools) == 0)
        return refuse(error, "tool_choice", "asks for a call, and the request has no \"tools\"");
    if (out->name.n && !has_tool(tools, out->name)) {
        error_set(error, OB_ERR_ARGUMENT, "no tool of the request is called \"%.60s\"",
                  out->name.p);
        error_at(error, NULL, "tool_choice", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        out->strict |= json_is_true(get(chat_choice_function(tool), "strict")) ||
                       json_is_true(get(tool, "strict"));
    }
    return OB_OK;
}
