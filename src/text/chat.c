/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: see chat.h. Requests come in OpenAI's spelling, templates were written for transformers'.
 * Where the two differ, chat_open finds out what the template understands by rendering a probe:
 * - content as a string or as a list of parts. A list of text parts is passed on if the template
 *   reads lists, else its texts are joined with newlines; a string is wrapped into one part only if
 *   the template reads nothing but lists.
 * - arguments of a tool call as an object or as JSON text: objects, unless the template fails on
 *   them or prints them as Python does and text works.
 * Templates pass over a message whose role they do not know, so "developer" becomes "system" where
 * the template does not name it, and a role that neither OpenAI nor the template has is refused.
 * Members of a message that are null are left out, except for "content". Everything in the request
 * is data to the template, but for the role names below: templates write '<|' + role + '|>'. */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/str.h"
#include "text/jinja/jinja.h"

static const char *const roles[] = {"assistant", "developer", "function", "ipython", "model",
                                    "observation", "system", "tool", "user", NULL};

/* A template and what it understands. */
struct form {
    struct str source;
    struct jinja *jinja;
    bool text_content, part_content, text_arguments;
};

struct chat {
    const struct tok *tok;
    const char *model;
    struct form plain, tools; /* tools.jinja: NULL if the model has no template for them */
};

/* "FILE: chat template line 3: ..." from the "line 3" of the template engine. */
static ob_status blame(ob_error *error, const char *model, ob_status status) {
    if (!error) return status;
    char where[sizeof error->where];
    snprintf(where, sizeof where, "chat template%s%.60s", error->where[0] ? " " : "", error->where);
    memcpy(error->where, where, sizeof where);
    error_at(error, model, NULL, OB_NO_OFFSET);
    return status;
}

/* ---- rendering ---- */

/* The names a template may use that come from the model. */
static json_t *trusted_names(const struct tok *tok) {
    json_t *names = json_object();
    struct str bos = tok_bos(tok) >= 0 ? tok_text(tok, tok_bos(tok)) : (struct str){0};
    struct str eos = tok_eos(tok) >= 0 ? tok_text(tok, tok_eos(tok)) : (struct str){0};
    if (bos.p) json_object_set_new(names, "bos_token", json_stringn(bos.p, bos.n));
    if (eos.p) json_object_set_new(names, "eos_token", json_stringn(eos.p, eos.n));
    return names;
}

static ob_status render(const struct tok *tok, const struct jinja *jinja, const json_t *data,
                        struct buf *text, struct buf *trust, ob_error *error) {
    static const struct jinja_limits limits = {.roles = roles};
    json_t *names = trusted_names(tok);
    if (!names) return error_memory(error, "a chat", 0);
    ob_status status =
        jinja_render(jinja, data, names, (double)time(NULL), &limits, text, trust, error);
    json_decref(names);
    return status;
}

/* ---- what a template understands ---- */

static bool contains(const struct buf *text, const char *what) {
    return text->p && strstr(text->p, what) != NULL;
}

static bool probe_with(const struct tok *tok, const struct jinja *jinja, const char *messages,
                       const char *tools, const char *wanted, const char *unwanted) {
    struct buf text = BUF_INIT;
    json_t *data = json_pack("{s:o?, s:o?, s:n, s:b}", "messages", json_loads(messages, 0, NULL),
                             "tools", json_loads(tools, JSON_DECODE_ANY, NULL), "documents",
                             "add_generation_prompt", 1);
    bool ok = data && render(tok, jinja, data, &text, NULL, NULL) == OB_OK &&
              contains(&text, wanted) && !(unwanted && contains(&text, unwanted));
    buf_free(&text);
    json_decref(data);
    return ok;
}

/* Whether the conversation, given as JSON, renders and shows `wanted` but not `unwanted`; some
 * templates work only with tools. */
static bool probe(const struct tok *tok, const struct jinja *jinja, const char *messages,
                  const char *wanted, const char *unwanted) {
    static const char *const tools[] = {
        "null", "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\","
                " \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]"};
    return probe_with(tok, jinja, messages, tools[0], wanted, unwanted) ||
           probe_with(tok, jinja, messages, tools[1], wanted, unwanted);
}

#define PROBE_CONTENT(content) "[{\"role\": \"user\", \"content\": " content "}]"
#define PROBE_CALL(content, arguments)                                                   \
    "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": " content \
    ", \"tool_calls\": [{\"id\": \"probe0001\", \"type\": \"function\", \"function\":"         \
    " {\"name\": \"f\", \"arguments\": " arguments "}}]}]"
#define PROBE_OBJECT "{\"pr0be\": \"v\"}"
#define PROBE_TEXT "\"{\\\"pr0be\\\": \\\"v\\\"}\""

/* Some templates show calls only where the content is null. */
static bool shows_object(const struct tok *tok, const struct jinja *j) {
    static const char python[] = "'pr0be': ";
    return probe(tok, j, PROBE_CALL("\"\"", PROBE_OBJECT), "pr0be", python) ||
           probe(tok, j, PROBE_CALL("null", PROBE_OBJECT), "pr0be", python);
}

static bool shows_text(const struct tok *tok, const struct jinja *j) {
    return probe(tok, j, PROBE_CALL("\"\"", PROBE_TEXT), "pr0be", NULL) ||
           probe(tok, j, PROBE_CALL("null", PROBE_TEXT), "pr0be", NULL);
}

static ob_status open_form(const struct tok *tok, struct str source, struct form *out,
                           ob_error *error) {
    ob_status status = jinja_parse(source.p, source.n, &out->jinja, error);
    if (status) return status;
    struct jinja *j = out->jinja;
    out->source = source;
    out->text_content = probe(tok, j, PROBE_CONTENT("\"pr0be\""), "pr0be", NULL);
    out->part_content = probe(tok, j, PROBE_CONTENT("[{\"type\": \"text\", \"text\": \"pr0be\"}]"),
                              "pr0be", "'pr0be'");
    out->text_arguments = !shows_object(tok, j) && shows_text(tok, j);
    return OB_OK;
}

ob_status chat_open(const struct tok *tok, const char *override, const char *model,
                    struct chat **out, ob_error *error) {
    struct str plain = override ? str_of(override) : tok_template(tok, NULL);
    struct str tools = override ? (struct str){0} : tok_template(tok, "tool_use");
    *out = NULL;
    if (!plain.n) {
        error_set(error, OB_ERR_NOT_FOUND, "the model has no chat template");
        error_at(error, model, NULL, OB_NO_OFFSET);
        return OB_ERR_NOT_FOUND;
    }
    struct chat *chat = calloc(1, sizeof *chat);
    if (!chat) return error_memory(error, "a chat template", sizeof *chat);
    chat->tok = tok;
    chat->model = model;
    ob_status status = open_form(tok, plain, &chat->plain, error);
    if (!status && tools.n) status = open_form(tok, tools, &chat->tools, error);
    if (status) {
        chat_close(&chat);
        return blame(error, model, status);
    }
    *out = chat;
    return OB_OK;
}

void chat_close(struct chat **chat) {
    if (!*chat) return;
    jinja_free(&(*chat)->plain.jinja);
    jinja_free(&(*chat)->tools.jinja);
    free(*chat);
    *chat = NULL;
}

/* ---- the request as the template wants it ---- */

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
        json_error_t problem;
        size_t n = json_string_length(arguments);
        fitted = n ? json_loadb(json_string_value(arguments), n, JSON_ALLOW_NUL, &problem)
                   : json_object();
        if (!json_is_object(fitted)) {
            json_decref(fitted);
            return BAD(error, "not a JSON object",
                       "messages[%zu].tool_calls[%zu].function.arguments", m, c);
        }
    } else {
        char *text = json_dumps(arguments, 0);
        fitted = text ? json_string(text) : NULL;
        free(text);
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

/* Fills `data`, the template's names. */
static ob_status fit_request(const struct form *form, const json_t *request, json_t *data,
                             ob_error *error) {
    json_t *more = field(request, "chat_template_kwargs");
    json_t *tools = field(request, "tools"), *documents = field(request, "documents");
    json_t *prompt = field(request, "add_generation_prompt"), *messages = json_array();
    if (!messages || json_object_set_new(data, "messages", messages))
        return error_memory(error, "a chat", 0);
    if (more && !json_is_object(more))
        return BAD(error, "not an object", "chat_template_kwargs");
    if (prompt && !json_is_boolean(prompt))
        return BAD(error, "not true or false", "add_generation_prompt");
    ob_status status = check_objects(tools, "tools", error);
    if (!status) status = check_objects(documents, "documents", error);
    if (!status) status = fit_messages(form, json_object_get(request, "messages"), messages, error);
    if (status) return status;
    bool no_tools = !json_array_size(tools);
    int failed = json_object_set(data, "tools", no_tools ? json_null() : tools) |
                 json_object_set(data, "documents", documents ? documents : json_null()) |
                 json_object_set(data, "add_generation_prompt", prompt ? prompt : json_true()) |
                 (more ? json_object_update_missing(data, more) : 0);
    return failed ? error_memory(error, "a chat", 0) : OB_OK;
}

/* ---- tokens ---- */

/* Exactly one BOS if the model uses one: what the template wrote, or ours. */
static ob_status encode(const struct tok *tok, const struct buf *text, const struct buf *trust,
                        ob_tokens *ids, ob_error *error) {
    ob_tokens own = {0};
    int32_t bos = tok_bos(tok);
    ob_status status = tok_encode(tok, text->p ? text->p : "", text->n,
                                  (const uint8_t *)(trust->p ? trust->p : ""), true, false, &own,
                                  error);
    if (status) return status;
    size_t skip = 0;
    while (bos >= 0 && skip < own.n && own.id[skip] == bos) skip++;
    bool add = bos >= 0 && (skip || tok_adds_bos(tok));
    size_t n = ids->n + own.n - skip + add;
    int32_t *grown = n ? realloc(ids->id, n * sizeof *grown) : ids->id;
    if (n && !grown) {
        free(own.id);
        return error_memory(error, "the prompt", n * sizeof *grown);
    }
    ids->id = grown;
    if (add) ids->id[ids->n++] = bos;
    if (own.n > skip) memcpy(ids->id + ids->n, own.id + skip, (own.n - skip) * sizeof *grown);
    ids->n = n;
    free(own.id);
    return OB_OK;
}

ob_status chat_prompt(const struct chat *chat, const json_t *request, ob_tokens *ids,
                      struct buf *text, ob_error *error) {
    struct buf made = BUF_INIT, trust = BUF_INIT;
    bool tools = json_array_size(json_object_get(request, "tools")) != 0;
    const struct form *form = tools && chat->tools.jinja ? &chat->tools : &chat->plain;
    if (!json_is_object(request))
        return error_set(error, OB_ERR_ARGUMENT, "the request is not an object");
    json_t *data = json_object();
    ob_status status = data ? fit_request(form, request, data, error)
                            : error_memory(error, "a chat", 0);
    if (!status) {
        status = render(chat->tok, form->jinja, data, &made, &trust, error);
        if (status) blame(error, chat->model, status);
    }
    if (!status) status = encode(chat->tok, &made, &trust, ids, error);
    if (!status && text) {
        buf_add(text, made.p, made.n);
        if (text->failed) status = error_memory(error, "the prompt", made.n);
    }
    json_decref(data);
    buf_free(&made);
    buf_free(&trust);
    return status;
}
