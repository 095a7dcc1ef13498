/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chat_parse.c: what a model writes. The first byte chooses the format, the second how the
 * answer begins and is told, the rest is the text. Whole, in pieces and in single bytes the same is
 * told, calls come one after the other, and arguments that are told whole are JSON objects. */
#include <stdint.h>
#include <stdlib.h>

#include "text/chat_parse.h"
#include "text/chat_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools_text[] =
    "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"s\": {\"type\":"
    " \"string\"}, \"n\": {\"type\": \"integer\"}}}}}]";

struct told {
    struct buf text[4], last; /* by kind; the arguments of the last call */
    unsigned calls;
    bool live;
};

static void check_last(struct told *told) {
    struct str last = {told->last.p ? told->last.p : "", told->last.n};
    if (told->calls && !told->live && (!scan_is_json(last) || last.p[0] != '{')) abort();
    buf_clear(&told->last);
}

static void on(void *user, const struct chat_event *event) {
    struct told *told = user;
    if (event->kind == CHAT_TOOL) {
        if (event->index != told->calls || !event->name.n || !event->id.n) abort();
        check_last(told);
        told->calls++;
        buf_add(&told->text[CHAT_TOOL], event->name.p, event->name.n);
    } else {
        if (!event->text.n) abort();
        buf_add(&told->text[event->kind], event->text.p, event->text.n);
    }
    if (event->kind != CHAT_ARGUMENTS) return;
    if (event->index + 1 != told->calls) abort();
    buf_add(&told->last, event->text.p, event->text.n);
}

static struct told parse(const uint8_t *data, size_t size, size_t step) {
    static const char *const styles[] = {"<think></think>", "[THINK][/THINK]", ""};
    struct told told = {.live = data[1] & 1};
    size_t formats = 0;
    while (chat_format_at(formats)) formats++;
    const struct chat_format *format = chat_format_at(data[0] % formats);
    json_t *tools = json_loads(tools_text, 0, NULL);
    struct chat_parser *p = chat_parser_new(&(struct chat_parser_options){
        .format = format, .style = chat_thought_of(format, str_of(styles[data[1] / 2 % 3])),
        .begin = (enum chat_begin)(data[1] / 8 % 3), .calls = data[1] & 64, .tools = tools,
        .single = data[1] & 128, .live = told.live, .on = on, .user = &told,
        .prompt = str_of("<|start|>assistant>>>")});
    json_decref(tools);
    if (!p) abort();
    for (size_t at = 2, n; at < size; at += n) {
        n = size - at < step ? size - at : step;
        chat_parser_add(p, (struct str){(const char *)data + at, n});
    }
    chat_parser_end(p);
    chat_parser_free(&p);
    check_last(&told);
    buf_free(&told.last);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 4096) return 0;
    struct told whole = parse(data, size, size), cut;
    static const size_t steps[] = {1, 7};
    for (size_t i = 0; i < 2; i++) {
        cut = parse(data, size, steps[i]);
        for (size_t k = 0; k < 4; k++) {
            struct buf *a = &whole.text[k], *b = &cut.text[k];
            if (!str_eq((struct str){a->p ? a->p : "", a->n}, (struct str){b->p ? b->p : "", b->n}))
                abort();
            buf_free(b);
        }
    }
    for (size_t k = 0; k < 4; k++) buf_free(&whole.text[k]);
    return 0;
}
