/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_fit.c: a request in the form a template understands (chat_form.c):
 * - a list of text parts is passed on if the template reads lists, else its texts are joined with
 *   newlines; a string is wrapped into one part only if the template reads nothing but lists;
 * - arguments of tool calls become objects or text, with the keys in the client's order;
 * - templates pass over a message whose role they do not know, so "developer" becomes "system"
 *   where the template does not name it, and a role that neither OpenAI nor the template has is
 *   refused;
 * - members of a message that are null are left out, except for "content";
 * - reasoning is given under the names that templates read.
 * The caller's request is not changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "text/chat_impl.h"

/* OB_ERR_ARGUMENT at "messages[2].content"; the path is printf's. */
#define BAD(error, message, ...) bad_field(error, message, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static ob_status bad_field(ob_error *error,
                                                                 const char *message,
                                                                 const char *format, ...) {
    char where[128];
    va_list args;
    va_start(args, format);
    vsnprintf(where, sizeof where, format, args);
    va_end(args);
    error_set(error, OB_ERR_ARGUMENT, "%s", message);
    error_at(error, NULL, where, OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

/* Checks that all parts are text; their texts joined with newlines in *joined. */
static ob_status join_parts(const json_t *parts, size_t m, struct buf *joined, ob_error *error) {
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const json_t *type = json_object_get(part, "type"), *text = json_object_get(part, "text");
        if (!json_is_string(type))
            return BAD(error, "missing or not a string", "messages[%zu].content[%zu].type", m, i);
        if (strcmp(json_string_value(type), "text") != 0)
            return BAD(error, "only parts of type \"text\" are supported",
                       "messages[%zu].content[%zu].type", m, i);
        if (!json_is_string(text))
            return BAD(error, "missing or not a string", "messages[%zu].content[%zu].text", m, i);
        if (i) buf_putc(joined, '\n');
        buf_add(joined, json_string_value(text), json_string_length(text));
    }
    return OB_OK;
}

/* Sets message["content"] to the form the template reads. */
static ob_status fit_content(const struct form *form, json_t *message, size_t m, ob_error *error) {
    json_t *content = json_object_get(message, "content");
    bool assistant = strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
    if (json_is_string(content)) {
        if (form->text_content || !form->part_content) return OB_OK;
        json_t *parts = json_pack("[{s:s, s:O}]", "type", "text", "text", content);
        if (!parts || json_object_set_new(message, "content", parts))
            return error_memory(error, "a message", 0);
        return OB_OK;
    }
    if (json_is_array(content)) {
        struct buf joined = BUF_INIT;
        ob_status status = join_parts(content, m, &joined, error);
        if (!status && !form->part_content) {
            json_t *text = json_stringn(joined.p ? joined.p : "", joined.n);
            if (joined.failed || !text || json_object_set_new(message, "content", text))
                status = error_memory(error, "a message", joined.n);
        }
        buf_free(&joined);
        return status;
    }
    if (content && !json_is_null(content))
        return BAD(error, "not a string or a list of parts", "messages[%zu].content", m);
    if (assistant && json_array_size(json_object_get(message, "tool_calls"))) return OB_OK;
    return BAD(error, "missing", "messages[%zu].content", m);
}

/* As Python's json.dumps writes it, which is what a model saw: `tojson` is that. */
static ob_status arguments_text(const json_t *arguments, struct buf *text, ob_error *error) {
    static const char source[] = "{{ x | tojson }}";
    struct jinja *jinja;
    json_t *data = json_pack("{s:O}", "x", arguments);
    if (!data) return error_memory(error, "a tool call", 0);
    ob_status status = jinja_parse(source, sizeof source - 1, &jinja, error);
    if (!status) {
        status = jinja_render(jinja, data, NULL, 0, NULL, text, NULL, error);
        jinja_free(&jinja);
    }
    json_decref(data);
    return status;
}

/* Arguments as an object or as text, whichever the template wants. */
static ob_status fit_arguments(const struct form *form, json_t *function, size_t m, size_t c,
                               ob_error *error) {
    json_t *arguments = json_object_get(function, "arguments"), *fitted = NULL;
    if (!arguments) return OB_OK;
    if (!json_is_string(arguments) && !json_is_object(arguments))
        return BAD(error, "not a string or an object",
                   "messages[%zu].tool_calls[%zu].function.arguments", m, c);
    if (json_is_string(arguments) == form->text_arguments) return OB_OK;
    if (json_is_string(arguments)) {
        json_error_t problem = {0};
        size_t n = json_string_length(arguments);
        fitted = n ? json_loadb(json_string_value(arguments), n, JSON_ALLOW_NUL, &problem)
                   : json_object();
        if (!json_is_object(fitted)) {
            bool large = !fitted && json_error_code(&problem) == json_error_numeric_overflow;
            json_decref(fitted);
            return BAD(error, large ? "a number is too large" : "not a JSON object",
                       "messages[%zu].tool_calls[%zu].function.arguments", m, c);
        }
    } else {
        struct buf text = BUF_INIT;
        ob_status status = arguments_text(arguments, &text, error);
        if (!status) fitted = json_stringn(text.p ? text.p : "", text.n);
        buf_free(&text);
        if (status) return status;
    }
    if (!fitted || json_object_set_new(function, "arguments", fitted))
        return error_memory(error, "a tool call", 0);
    return OB_OK;
}

/* message["tool_calls"], replaced by a copy that fits. */
static ob_status fit_calls(const struct form *form, json_t *message, size_t m, ob_error *error) {
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!calls) return OB_OK;
    if (!json_is_array(calls)) return BAD(error, "not a list", "messages[%zu].tool_calls", m);
    json_t *copy = json_deep_copy(calls);
    if (!copy || json_object_set_new(message, "tool_calls", copy))
        return error_memory(error, "a tool call", 0);
    for (size_t c = 0; c < json_array_size(copy); c++) {
        json_t *call = json_array_get(copy, c), *function = json_object_get(call, "function");
        if (!json_is_object(function))
            return BAD(error, "missing or not an object",
                       "messages[%zu].tool_calls[%zu].function", m, c);
        if (!json_is_string(json_object_get(function, "name")))
            return BAD(error, "missing or not a string",
                       "messages[%zu].tool_calls[%zu].function.name", m, c);
        ob_status status = fit_arguments(form, function, m, c, error);
        if (status) return status;
    }
    return OB_OK;
}

/* Whether the template has the role as a string. A role is a word: other text could be found
 * between two strings. */
static bool names_role(const struct form *form, struct str role) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (strspn(role.p, word) != role.n) return false;
    for (size_t i = 1; role.n && i + role.n < form->source.n; i++) {
        const char *at = form->source.p + i;
        bool quoted = at[-1] == at[role.n] && (at[-1] == '\'' || at[-1] == '"');
        if (quoted && memcmp(at, role.p, role.n) == 0) return true;
    }
    return false;
}

/* Sets message["role"] to one that the template does not pass over. */
static ob_status fit_role(const struct form *form, json_t *message, size_t m, ob_error *error) {
    static const char *const known[] = {"system", "user", "assistant", "tool"};
    const json_t *given = json_object_get(message, "role");
    if (!json_is_string(given))
        return BAD(error, "missing or not a string", "messages[%zu].role", m);
    struct str role = {json_string_value(given), json_string_length(given)};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(role, known[i])) return OB_OK;
    if (names_role(form, role)) return OB_OK;
    if (!str_is(role, "developer"))
        return BAD(error, "must be system, developer, user, assistant or tool (the model's chat "
                          "template names no other such role)", "messages[%zu].role", m);
    return json_object_set_new(message, "role", json_string("system"))
               ? error_memory(error, "a message", 0) : OB_OK;
}

/* What a message's reasoning is called: the first name is OpenAI-like servers' and most templates',
 * which all get; gpt-oss' template reads the second. As transformers does. */
static const char *const thoughts[] = {"reasoning_content", "thinking", "reasoning"};

static ob_status fit_thoughts(json_t *message, ob_error *error) {
    json_t *thought = NULL;
    for (size_t i = 0; i < 3 && !thought; i++) thought = json_object_get(message, thoughts[i]);
    if (!thought) return OB_OK;
    json_incref(thought);
    int failed = json_object_get(message, thoughts[1]) ? 0
                     : json_object_set(message, thoughts[1], thought);
    failed |= json_object_set_new(message, thoughts[0], thought);
    return failed ? error_memory(error, "a message", 0) : OB_OK;
}

static ob_status fit_message(const struct form *form, const json_t *given, size_t m,
                             json_t *messages, ob_error *error) {
    if (!json_is_object(given)) return BAD(error, "not an object", "messages[%zu]", m);
    json_t *message = json_object(), *member;
    const char *key;
    size_t n;
    if (!message || json_array_append_new(messages, message))
        return error_memory(error, "a message", 0);
    json_object_keylen_foreach((json_t *)(uintptr_t)given, key, n, member) {
        if (json_is_null(member) && strcmp(key, "content") != 0) continue;
        if (json_object_setn(message, key, n, member)) return error_memory(error, "a message", 0);
    }
    ob_status status = fit_role(form, message, m, error);
    if (!status) status = fit_thoughts(message, error);
    if (!status) status = fit_calls(form, message, m, error);
    return status ? status : fit_content(form, message, m, error);
}

static ob_status fit_messages(const struct form *form, const json_t *given, json_t *messages,
                              ob_error *error) {
    if (!json_is_array(given)) return BAD(error, "missing or not a list", "messages");
    if (!json_array_size(given)) return BAD(error, "empty", "messages");
    for (size_t m = 0; m < json_array_size(given); m++) {
        ob_status status = fit_message(form, json_array_get(given, m), m, messages, error);
        if (status) return status;
    }
    return OB_OK;
}

/* ---- the last message, to be continued ---- */

/* text + CHAT_MARK in place of object[key]. */
static ob_status add_mark(json_t *object, const char *key, ob_error *error) {
    const json_t *text = json_object_get(object, key);
    struct buf marked = BUF_INIT;
    buf_add(&marked, json_string_value(text), json_string_length(text));
    buf_puts(&marked, CHAT_MARK);
    json_t *new = marked.failed ? NULL : json_stringn(marked.p, marked.n);
    buf_free(&marked);
    if (!new || json_object_set_new(object, key, new))
        return error_memory(error, "a message", json_string_length(text));
    return OB_OK;
}

/* The content or, if `field` is one of the names of it, the reasoning. */
static ob_status mark_message(json_t *messages, const char *field, ob_error *error) {
    size_t m = json_array_size(messages) - 1;
    json_t *message = json_array_get(messages, m), *text = json_object_get(message, field);
    const char *role = json_string_value(json_object_get(message, "role"));
    bool thought = strcmp(field, "content") != 0;
    if (strcmp(role, "assistant") != 0)
        return BAD(error, "must be assistant for continue_final_message", "messages[%zu].role", m);
    if (json_is_array(text)) { /* fit_content has seen that its parts are text */
        size_t n = json_array_size(text);
        if (!n) return BAD(error, "nothing to continue", "messages[%zu].content", m);
        json_t *parts = json_deep_copy(text);
        if (!parts || json_object_set_new(message, field, parts))
            return error_memory(error, "a message", 0);
        return add_mark(json_array_get(parts, n - 1), "text", error);
    }
    if (!json_is_string(text))
        return BAD(error, "nothing to continue", "messages[%zu].%s", m, field);
    if (!thought) return add_mark(message, field, error);
    ob_status status = add_mark(message, thoughts[0], error);
    for (size_t i = 1; i < 3 && !status; i++)
        if (json_object_get(message, thoughts[i]))
            status = json_object_set(message, thoughts[i], json_object_get(message, thoughts[0]))
                         ? error_memory(error, "a message", 0) : OB_OK;
    return status;
}

/* continue_final_message: true, or which member of the message is continued. *field is NULL for
 * none. */
static ob_status read_continue(const json_t *request, const char **field, ob_error *error) {
    const json_t *value = json_object_get(request, "continue_final_message");
    *field = NULL;
    if (!value || json_is_null(value) || json_is_false(value)) return OB_OK;
    if (json_is_true(value)) return *field = "content", OB_OK;
    const char *name = json_string_value(value);
    if (name && strcmp(name, "content") == 0) return *field = "content", OB_OK;
    for (size_t i = 0; name && i < 3; i++)
        if (strcmp(name, thoughts[i]) == 0) return *field = thoughts[0], OB_OK;
    return BAD(error, "must be true, false, \"content\" or \"reasoning_content\"",
               "continue_final_message");
}

/* ---- the rest of the request ---- */

/* What else may be asked for by name: OpenAI's reasoning_effort, and enable_thinking as many
 * templates read it; an effort of "none" turns it off. chat_template_kwargs win. */
static ob_status fit_thinking(const json_t *request, json_t *data, ob_error *error) {
    json_t *effort = json_object_get(request, "reasoning_effort");
    json_t *enable = json_object_get(request, "enable_thinking");
    if (effort && !json_is_null(effort) && !json_is_string(effort))
        return BAD(error, "not a string", "reasoning_effort");
    if (enable && !json_is_null(enable) && !json_is_boolean(enable))
        return BAD(error, "not true or false", "enable_thinking");
    bool none = json_is_string(effort) && strcmp(json_string_value(effort), "none") == 0;
    int failed = 0;
    if (json_is_string(effort)) failed |= json_object_set(data, "reasoning_effort", effort);
    if (json_is_boolean(enable)) failed |= json_object_set(data, "enable_thinking", enable);
    else if (none) failed |= json_object_set(data, "enable_thinking", json_false());
    return failed ? error_memory(error, "a chat", 0) : OB_OK;
}

/* tools and documents: a list of objects, or null. */
static ob_status check_objects(const json_t *list, const char *name, ob_error *error) {
    if (!list || json_is_null(list)) return OB_OK;
    if (!json_is_array(list)) return BAD(error, "not a list", "%s", name);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_object(json_array_get(list, i)))
            return BAD(error, "not an object", "%s[%zu]", name, i);
    return OB_OK;
}

/* A field of the request; null counts as absent. */
static json_t *field(const json_t *request, const char *name) {
    json_t *value = json_object_get(request, name);
    return json_is_null(value) ? NULL : value;
}

ob_status chat_fit(const struct form *form, const json_t *request, json_t *data, bool *continues,
                   ob_error *error) {
    json_t *more = field(request, "chat_template_kwargs");
    json_t *tools = field(request, "tools"), *documents = field(request, "documents");
    json_t *prompt = field(request, "add_generation_prompt"), *messages = json_array();
    const char *continued = NULL;
    if (!messages || json_object_set_new(data, "messages", messages))
        return error_memory(error, "a chat", 0);
    if (more && !json_is_object(more))
        return BAD(error, "not an object", "chat_template_kwargs");
    if (prompt && !json_is_boolean(prompt))
        return BAD(error, "not true or false", "add_generation_prompt");
    ob_status status = check_objects(tools, "tools", error);
    if (!status) status = check_objects(documents, "documents", error);
    if (!status) status = fit_messages(form, json_object_get(request, "messages"), messages, error);
    if (!status) status = read_continue(request, &continued, error);
    if (!status && continued && json_is_true(prompt))
        status = BAD(error, "cannot be true beside continue_final_message",
                     "add_generation_prompt");
    if (!status && continued) status = mark_message(messages, continued, error);
    if (!status) status = fit_thinking(request, data, error);
    if (status) return status;
    if (!prompt) prompt = json_boolean(!continued);
    *continues = continued != NULL;
    int failed = json_object_set(data, "tools", json_array_size(tools) ? tools : json_null()) |
                 json_object_set(data, "documents", documents ? documents : json_null()) |
                 json_object_set(data, "add_generation_prompt", prompt);
    const char *key;
    json_t *value;
    json_object_foreach(more, key, value) {
        bool ours = strcmp(key, "messages") == 0 || strcmp(key, "tools") == 0 ||
                    strcmp(key, "documents") == 0 || strcmp(key, "add_generation_prompt") == 0;
        if (!ours) failed |= json_object_set(data, key, value);
    }
    return failed ? error_memory(error, "a chat", 0) : OB_OK;
}
