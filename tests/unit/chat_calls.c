/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_calls.c: what is known of a chat template's tool calls, for tests/tools/test_llama_data.py:
 *   chat_calls MODEL      reads a JSON object a line, {"template": ..., "request": {...}, "asks":
 *       the same without the answer, "behind": "a text"}, and answers each with a line: {"format",
 *       "reasoning", "text": what the template writes behind the last of that text, "content",
 *       "thought", "calls"} (the text parsed), or {"error": ...}. The model lends its tokenizer. */
#define _GNU_SOURCE /* getline, memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "text/chat.h"

struct heard {
    struct buf content, thought;
    json_t *calls;
};

static void hear(void *user, const struct chat_event *event) {
    struct heard *heard = user;
    if (event->kind == CHAT_CONTENT) buf_add(&heard->content, event->text.p, event->text.n);
    if (event->kind == CHAT_REASONING) buf_add(&heard->thought, event->text.p, event->text.n);
    if (event->kind == CHAT_TOOL)
        json_array_append_new(heard->calls,
                              json_pack("{s:s%, s:s%}", "id", event->id.p, event->id.n, "name",
                                        event->name.p, event->name.n));
    if (event->kind == CHAT_ARGUMENTS)
        json_object_set_new(json_array_get(heard->calls, event->index), "arguments",
                            json_stringn(event->text.p, event->text.n));
}

static struct str behind(const struct buf *text, const char *what) {
    struct str rest = {text->p ? text->p : "", text->n};
    for (const char *at; (at = memmem(rest.p, rest.n, what, strlen(what)));) {
        rest.n -= (size_t)(at - rest.p) + strlen(what);
        rest.p = at + strlen(what);
    }
    return rest;
}

/* Where the answer begins: behind what the template writes to ask for one. */
static struct str begins(const struct chat *chat, const json_t *asks, const char *mark,
                         struct str text, struct buf *prompt) {
    ob_tokens ids = {0};
    if (chat_prompt(chat, asks, &ids, prompt, NULL) != OB_OK) return text;
    free(ids.id);
    struct str tail = behind(prompt, mark);
    if (tail.n > text.n || memcmp(tail.p, text.p, tail.n) != 0) return (struct str){0};
    return (struct str){text.p + tail.n, text.n - tail.n};
}

static json_t *parse(const struct chat *chat, const json_t *one, struct str text) {
    const json_t *request = json_object_get(one, "request");
    struct buf prompt = BUF_INIT;
    struct str rest = begins(chat, json_object_get(one, "asks"),
                             json_string_value(json_object_get(one, "behind")), text, &prompt);

    struct heard heard = {.calls = json_array()};
    const struct chat_format *format = chat_tool_format(chat);
    const struct chat_thought *style = chat_thought_style(chat);
    struct str open = chat_thought_open(style);
    struct str asked = {prompt.p ? prompt.p : "", rest.p ? prompt.n : 0};
    bool inside = chat_thought_is_open(style, asked);
    /* a template may ask in another way than it shows answers: then from the reasoning on */
    const char *thinks = rest.p ? NULL : memmem(text.p, text.n, open.p, open.n);
    struct str said = rest.p ? rest
                      : thinks ? (struct str){thinks, text.n - (size_t)(thinks - text.p)} : text;
    struct chat_parser *parser = chat_parser_new(&(struct chat_parser_options){
        .format = format, .calls = true, .style = style, .on = hear, .user = &heard, .seed = 1,
        .begin = inside ? CHAT_BEGIN_REASONING : CHAT_BEGIN_ANSWER, .prompt = asked,
        .tools = json_object_get(request, "tools")});
    chat_parser_add(parser, said);
    chat_parser_end(parser);
    chat_parser_free(&parser);
    json_t *out = json_pack(
        "{s:s, s:s, s:s%, s:s%, s:s%, s:o}", "format", chat_format_name(format), "reasoning",
        chat_thought_name(style), "text", text.p, text.n, "content",
        heard.content.p ? heard.content.p : "", heard.content.n, "thought",
        heard.thought.p ? heard.thought.p : "", heard.thought.n, "calls", heard.calls);
    buf_free(&heard.content);
    buf_free(&heard.thought);
    buf_free(&prompt);
    return out;
}

static json_t *answer(const struct tok *tok, const json_t *one) {
    char line[1024];
    ob_error error;
    ob_tokens ids = {0};
    struct chat *chat;
    struct buf text = BUF_INIT;
    const json_t *request = json_object_get(one, "request");
    const char *mark = json_string_value(json_object_get(one, "behind"));
    if (chat_open(tok, json_string_value(json_object_get(one, "template")), NULL, &chat, &error))
        return json_pack("{s:s}", "error", ob_error_line(&error, line, sizeof line));
    json_t *out;
    if (chat_prompt(chat, request, &ids, &text, &error))
        out = json_pack("{s:s, s:s, s:s}", "error", ob_error_line(&error, line, sizeof line),
                        "format", chat_format_name(chat_tool_format(chat)), "reasoning",
                        chat_thought_name(chat_thought_style(chat)));
    else
        out = parse(chat, one, behind(&text, mark));
    buf_free(&text);
    free(ids.id);
    chat_close(&chat);
    return out;
}

int main(int argc, char **argv) {
    struct source *source;
    struct tok *tok;
    ob_error error;
    char *line = NULL, message[1024];
    size_t cap = 0;
    ssize_t n;
    if (argc < 2 || source_open(argv[1], &source, &error) || tok_open(source, &tok, &error)) {
        fprintf(stderr, "%s\n", argc < 2 ? "no model" : ob_error_line(&error, message, 1024));
        return 1;
    }
    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_t *one = json_loadb(line, (size_t)n, 0, NULL), *out = answer(tok, one);
        char *text = out ? json_dumps(out, JSON_COMPACT) : NULL;
        printf("%s\n", text ? text : "null");
        fflush(stdout);
        free(text);
        json_decref(out);
        json_decref(one);
    }
    free(line);
    tok_close(&tok);
    source_close(&source);
    return 0;
}
