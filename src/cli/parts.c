/* SPDX-License-Identifier: Apache-2.0
 * parts.c: see parts.h. */
#include "cli/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "text/chat_parse.h"

struct parts {
    struct chat_parser *parser;
    struct answer *answer;
    struct cli_style style;
    struct buf *print;
    enum chat_kind now;
    bool opened; /* by the prompt */
};

/* What stands between two kinds of parts. */
static void turn_to(struct parts *p, enum chat_kind kind) {
    bool said = p->answer->text.n || p->answer->thought.n || json_array_size(p->answer->calls);
    if (p->now == CHAT_REASONING && kind != CHAT_REASONING)
        buf_printf(p->print, "\n</think>%s\n\n", p->style.off);
    else if (p->now == CHAT_ARGUMENTS && kind != CHAT_ARGUMENTS)
        buf_puts(p->print, kind == CHAT_CONTENT ? "]\n" : "]");
    if (kind == CHAT_REASONING && p->now != CHAT_REASONING)
        buf_printf(p->print, "%s<think>\n", p->style.dim);
    if (kind == CHAT_TOOL && said && p->now != CHAT_REASONING) buf_putc(p->print, '\n');
    p->now = kind;
}

static void begin_call(struct parts *p, const struct chat_event *event) {
    json_t *call = json_pack("{s:o, s:s, s:{s:o, s:s}}", "id", cli_json_text(event->id), "type",
                             "function", "function", "name", cli_json_text(event->name),
                             "arguments", "");
    if (json_array_append_new(p->answer->calls, call) != 0) p->answer->text.failed = true;
    buf_puts(p->print, "[call ");
    buf_add(p->print, event->name.p, event->name.n);
    buf_putc(p->print, ' ');
    p->now = CHAT_ARGUMENTS;
}

static void on_part(void *user, const struct chat_event *event) {
    struct parts *p = user;
    if (event->kind != p->now) turn_to(p, event->kind);
    if (event->kind == CHAT_TOOL) {
        begin_call(p, event);
        return;
    }
    buf_add(p->print, event->text.p, event->text.n);
    if (event->kind == CHAT_CONTENT) buf_add(&p->answer->text, event->text.p, event->text.n);
    if (event->kind == CHAT_REASONING) buf_add(&p->answer->thought, event->text.p, event->text.n);
    if (event->kind != CHAT_ARGUMENTS) return;
    json_t *call = json_array_get(p->answer->calls, event->index);
    json_t *text = cli_json_text(event->text); /* all of them: the parser is not live */
    if (json_object_set_new(json_object_get(call, "function"), "arguments", text) != 0)
        p->answer->text.failed = true;
}

ob_status parts_open(const ob_engine *engine, const struct prompt *prompt,
                     const struct options *options, struct answer *answer, struct parts **out,
                     ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    *out = NULL;
    if (!prompt->text || !info.tool_format || strcmp(options->reasoning_format, "none") == 0)
        return OB_OK;
    struct parts *p = calloc(1, sizeof *p);
    if (!p) return error_memory(error, "an answer", sizeof *p);
    struct chat_parser_options parser = {
        .style = chat_thought_find(info.reasoning_style), .calls = true, .seed = os_random(),
        .prompt = {prompt->text, prompt->text_n}, .on = on_part, .user = p};
    chat_format_find(info.tool_format, &parser.format, NULL);
    p->opened = parser.style && chat_thought_is_open(parser.style, parser.prompt);
    if (p->opened) parser.begin = CHAT_BEGIN_REASONING;
    *p = (struct parts){.parser = chat_parser_new(&parser), .answer = answer, .opened = p->opened,
                        .style = cli_style_for(stdout, options)};
    answer->calls = json_array();
    *out = p;
    return p->parser && answer->calls ? OB_OK : error_memory(error, "an answer", 0);
}

void parts_close(struct parts **parts) {
    if (!*parts) return;
    chat_parser_free(&(*parts)->parser);
    free(*parts);
    *parts = NULL;
}

bool parts_thinks(const struct parts *parts) { return parts && parts->opened; }

void parts_add(struct parts *p, struct str text, bool last, struct buf *print) {
    p->print = print;
    chat_parser_add(p->parser, text);
    if (last) chat_parser_end(p->parser);
    if (last && (p->now == CHAT_REASONING || p->now == CHAT_ARGUMENTS)) turn_to(p, CHAT_CONTENT);
    if (chat_parser_failed(p->parser)) print->failed = true;
}
