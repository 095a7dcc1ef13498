/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_detect.c: how the model of a template writes tool calls: what the template's markers say
 * (chat_format_of), if a call that the template writes is read back so; else the first format that
 * does read it back. A template that writes no calls leaves it at the markers. */
#include "text/chat_impl.h"
#include "text/chat_parse.h"

#define USER "pr0be-user"
#define ARGUMENTS "{\"pr0be\": \"v\"}"

/* The conversation: a question and a call. Some templates want text for the arguments, some show
 * calls only beside an empty content, some only where it is null. */
static json_t *conversation(bool text, bool null) {
    json_t *arguments = text ? json_string(ARGUMENTS) : json_loads(ARGUMENTS, 0, NULL);
    json_t *content = null ? json_null() : json_string("");
    return json_pack(
        "{s:[{s:s, s:s}, {s:s, s:o, s:[{s:s, s:s, s:{s:s, s:o}}]}],"
        " s:[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[]}}}], s:b, s:n}",
        "messages", "role", "user", "content", USER, "role", "assistant", "content", content,
        "tool_calls", "id", "pr0be0001", "type", "function", "function", "name", "get_pr0be",
        "arguments", arguments, "tools", "type", "function", "function", "name", "get_pr0be",
        "description", "d", "parameters", "type", "object", "properties", "pr0be", "type",
        "string", "description", "d", "required", "add_generation_prompt", 0, "documents");
}

/* What the template writes behind the question; false if there is no call in it. */
static bool render(const struct tok *tok, const struct form *form, json_t *data, struct buf *out) {
    struct buf text = BUF_INIT;
    size_t at = 0, n = sizeof USER - 1;
    if (data && chat_render(tok, form->jinja, data, &text, NULL, NULL) == OB_OK)
        for (size_t i = 0; i + n <= text.n; i++)
            if (memcmp(text.p + i, USER, n) == 0) at = i + n;
    if (at) buf_add(out, text.p + at, text.n - at);
    buf_free(&text);
    return at && !out->failed && str_contains((struct str){out->p ? out->p : "", out->n}, "pr0be");
}

struct heard {
    struct buf arguments;
    unsigned calls, wrong;
};

static void hear(void *user, const struct chat_event *event) {
    struct heard *heard = user;
    if (event->kind == CHAT_TOOL) {
        heard->calls++;
        heard->wrong += !str_is(event->name, "get_pr0be");
    } else if (event->kind == CHAT_ARGUMENTS) {
        buf_add(&heard->arguments, event->text.p, event->text.n);
    }
}

static bool reads(const struct chat_format *format, const json_t *tools, struct str text) {
    struct heard heard = {0};
    struct chat_parser *parser = chat_parser_new(&(struct chat_parser_options){
        .format = format, .style = chat_thought_of(format, text), .tools = tools, .calls = true,
        .begin = CHAT_BEGIN_CONTENT, .on = hear, .user = &heard});
    if (!parser) return false;
    chat_parser_add(parser, text);
    chat_parser_end(parser);
    json_t *is = json_loadb(heard.arguments.p ? heard.arguments.p : "", heard.arguments.n, 0, NULL);
    json_t *wanted = json_loads(ARGUMENTS, 0, NULL);
    bool same = heard.calls == 1 && !heard.wrong && is && json_equal(is, wanted);
    json_decref(is);
    json_decref(wanted);
    buf_free(&heard.arguments);
    chat_parser_free(&parser);
    return same;
}

const struct chat_format *chat_detect(const struct tok *tok, const struct form *form) {
    const struct chat_format *told = chat_format_of(form->source), *found = told, *other;
    struct buf text = BUF_INIT;
    json_t *data = conversation(form->text_arguments, false);
    if (!render(tok, form, data, &text)) {
        json_decref(data);
        buf_clear(&text);
        data = conversation(form->text_arguments, true);
        if (!render(tok, form, data, &text)) buf_clear(&text);
    }
    struct str written = {text.p ? text.p : "", text.n};
    const json_t *tools = json_object_get(data, "tools");
    if (written.n && !reads(told, tools, written))
        for (size_t i = 0; found == told && (other = chat_format_at(i)); i++)
            if (reads(other, tools, written)) found = other;
    json_decref(data);
    buf_free(&text);
    return found;
}
