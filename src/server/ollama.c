/* SPDX-License-Identifier: Apache-2.0
 * ollama.c: see ollama.h. */
#include "server/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/sse.h"

/* Options that have other names here, or the same below "options". */
const char *const ollama_fields[][2] = {
    {"n_predict", "options.num_predict"},
    {"stop", "options.stop"},
    {"seed", "options.seed"},
    {"temperature", "options.temperature"},
    {"top_k", "options.top_k"},
    {"top_p", "options.top_p"},
    {"min_p", "options.min_p"},
    {"typical_p", "options.typical_p"},
    {"repeat_last_n", "options.repeat_last_n"},
    {"repeat_penalty", "options.repeat_penalty"},
    {"presence_penalty", "options.presence_penalty"},
    {"frequency_penalty", "options.frequency_penalty"},
    {"mirostat", "options.mirostat"},
    {"mirostat_tau", "options.mirostat_tau"},
    {"mirostat_eta", "options.mirostat_eta"},
    {"json_schema", "format"},
    {"response_format", "format"},
    {"enable_thinking", "think"},
    {"reasoning_effort", "think"},
    {NULL, NULL},
};

json_t *ollama_shape(unsigned status, const char *type, const char *message, const char *field,
                     json_t *details) {
    json_t *json = json_pack("{s:o}", "error", clean_json(str_of(message)));
    (void)status, (void)type, (void)field;
    if (details && json) json_object_update(json, details);
    json_decref(details);
    return json;
}

/* NULL for null. */
static const json_t *get(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

static void put(json_t *out, const char *field, const json_t *value) {
    if (value) json_object_set(out, field, (json_t *)(uintptr_t)value);
}

/* ---- requests -------------------------------------------------------------------------------- */

static ob_status add_options(const json_t *request, json_t *out, ob_error *error) {
    const json_t *options = get(request, "options");
    if (options && !json_is_object(options))
        return params_refuse(error, "options", options, "an object");
    for (size_t i = 0; ollama_fields[i][0]; i++) {
        const char *name = ollama_fields[i][1];
        if (strncmp(name, "options.", 8) != 0) continue;
        const json_t *value = get(options, name + 8);
        bool fill = json_is_integer(value) && json_integer_value(value) == -2;
        if (value && fill && strcmp(name + 8, "num_predict") == 0)
            json_object_set_new(out, ollama_fields[i][0], json_integer(-1)); /* to the end */
        else
            put(out, ollama_fields[i][0], value);
    }
    return OB_OK;
}

static ob_status add_format(const json_t *request, json_t *out, ob_error *error) {
    const json_t *format = get(request, "format");
    const char *word = json_string_value(format);
    if (!format || (word && !*word)) return OB_OK;
    if (word && strcmp(word, "json") == 0)
        json_object_set_new(out, "response_format", json_pack("{s:s}", "type", "json_object"));
    else if (json_is_object(format))
        put(out, "json_schema", format);
    else
        return params_refuse(error, "format", format, "\"json\" or a JSON schema");
    return OB_OK;
}

static ob_status add_think(const json_t *request, json_t *out, ob_error *error) {
    const json_t *think = get(request, "think");
    const char *word = json_string_value(think);
    if (!think) return OB_OK;
    bool level = word && (strcmp(word, "low") == 0 || strcmp(word, "medium") == 0 ||
                          strcmp(word, "high") == 0);
    if (!json_is_boolean(think) && !level)
        return params_refuse(error, "think", think, "true, false, \"low\", \"medium\" or \"high\"");
    json_object_set_new(out, "enable_thinking", json_boolean(!json_is_false(think)));
    if (level) put(out, "reasoning_effort", think);
    return OB_OK;
}

ob_status ollama_common(const json_t *request, json_t *out, ob_error *error) {
    const json_t *stream = get(request, "stream");
    put(out, "model", get(request, "model"));
    if (stream) put(out, "stream", stream);
    else json_object_set_new(out, "stream", json_true());
    ob_status s = add_options(request, out, error);
    if (s == OB_OK) s = add_format(request, out, error);
    return s == OB_OK ? add_think(request, out, error) : s;
}

/* Calls have no ids here: they are numbered, and results take the numbers in their order. */
struct count {
    unsigned calls, results;
};

static ob_status refuse(ob_error *error, size_t index, const char *field, const json_t *value,
                        const char *what) {
    char where[64];
    snprintf(where, sizeof where, "messages[%zu]%s%s", index, field ? "." : "",
             field ? field : "");
    return params_refuse(error, where, value, what);
}

static ob_status add_calls(const json_t *calls, size_t index, json_t *message, struct count *count,
                           ob_error *error) {
    json_t *list = json_array();
    json_object_set_new(message, "tool_calls", list);
    if (!json_is_array(calls)) return refuse(error, index, "tool_calls", calls, "an array");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        char id[32];
        const json_t *function = get(json_array_get(calls, i), "function");
        const json_t *name = get(function, "name"), *arguments = get(function, "arguments");
        if (!json_is_string(name) || !json_is_object(arguments))
            return refuse(error, index, "tool_calls", json_array_get(calls, i),
                          "calls with a function's name and arguments, an object");
        snprintf(id, sizeof id, "call_%u", count->calls++);
        char *text = json_dumps(arguments, 0);
        json_array_append_new(list, json_pack("{s:s, s:s, s:{s:O, s:s}}", "id", id, "type",
                                              "function", "function", "name", name, "arguments",
                                              text));
        free(text);
    }
    return OB_OK;
}

static ob_status add_message(const json_t *message, size_t index, json_t *list,
                             struct count *count, ob_error *error) {
    const json_t *role = get(message, "role"), *content = get(message, "content");
    const json_t *thinking = get(message, "thinking"), *calls = get(message, "tool_calls");
    if (!json_is_object(message)) return refuse(error, index, NULL, message, "an object");
    if (!json_is_string(role)) return refuse(error, index, "role", role, "a string");
    if (content && !json_is_string(content))
        return refuse(error, index, "content", content, "a string");
    if (thinking && !json_is_string(thinking))
        return refuse(error, index, "thinking", thinking, "a string");
    if (get(message, "images") && json_array_size(get(message, "images")) > 0)
        return refuse(error, index, "images", get(message, "images"),
                      "empty (the model reads text alone)");
    json_t *out = json_pack("{s:O}", "role", role);
    json_array_append_new(list, out);
    if (content) put(out, "content", content);
    else json_object_set_new(out, "content", json_string(""));
    put(out, "reasoning_content", thinking);
    put(out, "name", get(message, "tool_name"));
    if (strcmp(json_string_value(role), "tool") == 0) {
        char id[32];
        snprintf(id, sizeof id, "call_%u", count->results++);
        json_object_set_new(out, "tool_call_id", json_string(id));
    }
    return calls ? add_calls(calls, index, out, count, error) : OB_OK;
}

ob_status ollama_messages(const json_t *request, json_t *out, ob_error *error) {
    const json_t *messages = get(request, "messages");
    struct count count = {0};
    json_t *list = json_array();
    json_object_set_new(out, "messages", list);
    if (!json_is_array(messages))
        return params_refuse(error, "messages", messages, "an array of messages");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        ob_status s = add_message(json_array_get(messages, i), i, list, &count, error);
        if (s != OB_OK) return s;
    }
    put(out, "tools", get(request, "tools"));
    return OB_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

json_t *ollama_time(int64_t seconds) {
    char text[40];
    struct tm tm;
    time_t time = (time_t)seconds;
    if (!gmtime_r(&time, &tm) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        return NULL;
    return json_string(text);
}

json_t *ollama_line(const struct answer *a, bool done) {
    return json_pack("{s:s, s:o, s:b}", "model", server_model(a->server), "created_at",
                     ollama_time(a->created), "done", done);
}

static json_t *nanoseconds(double ms) { return json_integer((json_int_t)(ms * 1e6)); }

void ollama_end(const struct answer *a, const struct said *said, json_t *line) {
    const ob_timings *t = &said->timings;
    json_t *end = json_pack(
        "{s:s, s:o, s:i, s:I, s:o, s:I, s:o}", "done_reason",
        said->finish[0] == 'l' ? "length" : "stop", "total_duration", nanoseconds(a->total_ms),
        "load_duration", 0, "prompt_eval_count", (json_int_t)t->cache_n + t->prompt_n,
        "prompt_eval_duration", nanoseconds(t->prompt_ms), "eval_count",
        (json_int_t)t->predicted_n, "eval_duration", nanoseconds(t->predicted_ms));
    json_object_update(line, end);
    json_decref(end);
}

json_t *ollama_call(json_t *name, struct str arguments) {
    json_t *object = json_loadb(arguments.p ? arguments.p : "", arguments.n, 0, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        object = json_pack("{s:o}", "input", clean_json(arguments));
    }
    return json_pack("{s:{s:o, s:o}}", "function", "name", name, "arguments", object);
}

void ollama_failed(struct answer *a, json_t *error, struct buf *out) {
    (void)a;
    line_json(out, error);
}

json_t *ollama_details(const ob_engine_info *info) {
    char size[32];
    snprintf(size, sizeof size, "%.1f%c",
             (double)info->parameters / (info->parameters < 1000000000 ? 1e6 : 1e9),
             info->parameters < 1000000000 ? 'M' : 'B');
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf",
                     "family", info->family, "families", info->family, "parameter_size", size,
                     "quantization_level", "");
}

bool ollama_is_model(const struct server *server, const char *name) {
    const char *model = server_model(server);
    size_t n = strlen(model);
    return strncmp(name, model, n) == 0 && (!name[n] || strcmp(name + n, ":latest") == 0);
}

bool ollama_only_loads(struct server *server, struct http_exchange *x, const char *field) {
    json_t *request = NULL;
    bool chat = field[0] == 'm';
    if (params_parse(http_request(x)->body, &request, NULL) != OB_OK) return false;
    const json_t *value = get(request, field);
    bool empty = !value || (json_is_string(value) && json_string_length(value) == 0) ||
                 (json_is_array(value) && json_array_size(value) == 0);
    if (get(request, "suffix") || (chat && !value)) empty = false;
    json_decref(request);
    if (!empty) return false;
    json_t *line = json_pack("{s:s, s:o, s:b, s:s}", "model", server_model(server), "created_at",
                             ollama_time((int64_t)time(NULL)), "done", 1, "done_reason", "load");
    if (chat)
        json_object_set_new(line, "message",
                            json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
    else
        json_object_set_new(line, "response", json_string(""));
    reply_json(x, REPLY_OK, line);
    return true;
}
