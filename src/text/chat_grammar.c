/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_grammar.c: where calls stand in an answer; see chat_grammar.h.
 *
 *   a call must come:   [reasoning] calls
 *   a call may come:    [reasoning] text without the format's markers [calls]
 *
 * In a format whose messages all begin with a marker (chat_format.prompt), that stands before each
 * of them, and the template has written the first. */
#include "text/chat_grammar.h"

#include "base/error.h"
#include "base/utf8.h"
#include "sample/schema/list.h"
#include "text/chat_write.h"

enum { BLANKS = 4, MARKERS = 64, FREE_TOKENS = 32 };

static grammar_expr seq(struct writer *w, grammar_expr a, grammar_expr b) {
    return grammar_seq(w->b, (grammar_expr[]){a, b}, 2);
}
static grammar_expr maybe(struct writer *w, grammar_expr a) {
    return grammar_repeat(w->b, a, 0, 1);
}

static const struct chat_write *choose(const struct chat_grammar_options *o) {
    for (size_t i = 0; i < CHAT_WRITES; i++) {
        const struct chat_write *write = &o->format->write[i];
        if (!write->call) return NULL;
        if (!write->source || str_contains(o->source, write->source)) return write;
    }
    return NULL;
}

/* ---- markers as symbols ---------------------------------------------------------------------- */

struct symbols {
    struct list symbol; /* struct schema_symbol, of all markers */
    size_t end[MARKERS];
    size_t n;
    int32_t token[FREE_TOKENS]; /* that text may hold */
    size_t tokens;
};

static void add_token(struct symbols *s, int32_t id) {
    for (size_t i = 0; i < s->tokens; i++)
        if (s->token[i] == id) return;
    if (s->tokens < FREE_TOKENS) s->token[s->tokens++] = id;
}

/* Symbols of a text into the list, if it is one of markers. Bit i of `spelled`: its control token i
 * is spelled out. Returns how many there are. */
static unsigned read_symbols(struct writer *w, struct str text, struct symbols *s, bool marker,
                             unsigned spelled) {
    bool ends = false;
    size_t n;
    unsigned controls = 0;
    for (size_t at = 0; at < text.n; at += n) {
        struct str rest = {text.p + at, text.n - at};
        struct schema_symbol symbol = {.token = write_control(w, rest, &n, &ends)};
        if (symbol.token >= 0 && !ends) add_token(s, symbol.token);
        if (symbol.token >= 0 && spelled >> controls++ & 1) {
            symbol.token = -1;
            for (size_t k = 0; k < n && marker;) {
                k += utf8_decode(rest.p + k, n - k, &symbol.code);
                *(struct schema_symbol *)list_add(&s->symbol) = symbol;
            }
            continue;
        }
        if (symbol.token < 0) n = utf8_decode(rest.p, rest.n, &symbol.code);
        if (marker) *(struct schema_symbol *)list_add(&s->symbol) = symbol;
    }
    if (marker) s->end[s->n++] = s->symbol.n;
    return controls;
}

/* A marker that has control tokens is one too where they are spelled out: the parser reads text. */
static void add_marker(struct writer *w, const char *text, struct symbols *s) {
    unsigned controls = 0;
    if (!text || !*text) return;
    for (unsigned spelled = 0; spelled < 1u << controls || !spelled; spelled++)
        if (s->n < MARKERS) controls = read_symbols(w, str_of(text), s, true, spelled);
        else s->symbol.failed = true;
}

/* What a call in any spelling that the parser knows begins with. */
static void add_opens(struct writer *w, struct symbols *s) {
    const struct chat_format *f = w->options->format;
    char text[64];
    for (size_t i = 0; i < CHAT_CALLS && f->call[i]; i++) {
        struct str open[CHAT_OPENS];
        size_t n = strstr(f->call[i], "%!") ? 0 : chat_pattern_opens(f->call[i], open);
        for (size_t k = 0; k < n; k++) {
            snprintf(text, sizeof text, "%.*s", (int)open[k].n, open[k].p);
            add_marker(w, text, s);
        }
    }
}

static grammar_expr free_expr(struct writer *w, struct symbols *s, bool tokens, bool no_json) {
    struct schema_marker marker[MARKERS];
    const struct schema_symbol *symbol = s->symbol.p;
    if (s->symbol.failed) {
        w->status = error_memory(w->error, "a grammar", 0);
        return grammar_nothing(w->b);
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t from = i ? s->end[i - 1] : 0;
        marker[i] = (struct schema_marker){symbol + from, s->end[i] - from};
    }
    return schema_free(w->b, &(struct schema_free){.marker = marker, .markers = s->n,
                                                   .token = s->token,
                                                   .tokens = tokens ? s->tokens : 0,
                                                   .no_json = no_json});
}

/* ---- parts of an answer ---------------------------------------------------------------------- */

static grammar_expr blanks(struct writer *w) {
    const struct grammar_range range[] = {{' ', ' '}, {'\n', '\n'}};
    return grammar_repeat(w->b, grammar_class(w->b, range, 2, false), 0, BLANKS);
}

static grammar_expr thought_expr(struct writer *w) {
    const struct chat_thought *style = w->options->style;
    struct symbols s = {.symbol = LIST_INIT(sizeof(struct schema_symbol))};
    add_marker(w, style->close, &s);
    if (w->options->format->ends_thought) add_opens(w, &s);
    grammar_expr part[] = {write_text(w, str_of(style->open)), free_expr(w, &s, false, false),
                           write_text(w, str_of(style->close))};
    list_free(&s.symbol);
    return grammar_seq(w->b, part, 3);
}

/* Text that is no call: without what marks one, with the other control tokens of the format. */
static grammar_expr content_expr(struct writer *w, const struct chat_thought *style) {
    const struct chat_format *f = w->options->format;
    struct symbols s = {.symbol = LIST_INIT(sizeof(struct schema_symbol))};
    bool own = w->write->trigger[0] != NULL;
    for (size_t i = 0; own && i < CHAT_TRIGGERS; i++) add_marker(w, w->write->trigger[i], &s);
    if (!own) add_opens(w, &s);
    for (size_t i = 0; i < CHAT_SKIPS && f->skip[i]; i++)
        read_symbols(w, str_of(f->skip[i]), &s, false, 0);
    /* Reasoning comes first or not at all. */
    if (style && !style->anywhere) add_marker(w, style->open, &s);
    if (style && style->anywhere) {
        read_symbols(w, str_of(style->open), &s, false, 0);
        read_symbols(w, str_of(style->close), &s, false, 0);
    }
    grammar_expr text = free_expr(w, &s, true, w->write->bare);
    list_free(&s.symbol);
    return seq(w, write_text(w, str_of(w->write->content)), text);
}

/* What begins every message, and the first one's if the template has not written it. */
static grammar_expr message(struct writer *w, bool first) {
    const char *begins = w->options->format->prompt;
    if (!begins) return blanks(w);
    if (first && str_ends(w->options->prompt, begins)) return grammar_empty(w->b);
    return write_text(w, str_of(begins));
}

/* A template that does not know the marker is of a model that does not reason. */
static const struct chat_thought *style_of(const struct chat_grammar_options *o) {
    bool knows = o->style && (o->format->thought == o->style ||
                              (!o->format->prompt && str_contains(o->source, o->style->open)));
    return knows ? o->style : NULL;
}

static grammar_expr answer_expr(struct writer *w) {
    const struct chat_thought *style = style_of(w->options);
    bool must = w->options->choice.kind == CHAT_CHOICE_REQUIRED;
    grammar_expr calls = write_calls(w);
    if (must) {
        grammar_expr thought = style ? maybe(w, seq(w, thought_expr(w), message(w, false)))
                                     : grammar_empty(w->b);
        return grammar_seq(w->b, (grammar_expr[]){message(w, true), thought, calls}, 3);
    }
    /* Reasoning of channels is text as any other here: it has no call in it either. */
    bool apart = style && !style->anywhere;
    grammar_expr content = content_expr(w, style);
    if (w->write->content) { /* text is a message of its own */
        grammar_expr more = seq(w, message(w, false), calls);
        grammar_expr either[] = {calls, seq(w, content, maybe(w, more))};
        return seq(w, message(w, true), grammar_alt(w->b, either, 2));
    }
    grammar_expr thought = apart ? maybe(w, seq(w, blanks(w), thought_expr(w)))
                                 : grammar_empty(w->b);
    return grammar_seq(w->b, (grammar_expr[]){thought, content, maybe(w, calls)}, 3);
}

ob_status chat_grammar(const struct chat_grammar_options *options, struct grammar **out,
                       ob_error *error) {
    ob_error here;
    struct writer w = {.options = options, .write = choose(options), .error = &here};
    *out = NULL;
    if (!w.write) {
        error_set(error, OB_ERR_UNSUPPORTED, "calls in the model's tool format (%s) cannot be held "
                  "to a grammar", options->format->name);
        error_at(error, NULL, "tool_choice", OB_NO_OFFSET);
        return OB_ERR_UNSUPPORTED;
    }
    w.b = grammar_builder_new();
    if (!w.b) return error_memory(error, "a grammar", 0);
    grammar_rule root = grammar_rule_new(w.b, "an answer with calls");
    grammar_expr answer = answer_expr(&w);
    ob_status s = w.status;
    if (s == OB_OK && !grammar_builder_failed(w.b)) grammar_define(w.b, root, answer);
    if (s == OB_OK) s = grammar_finish(w.b, root, out, &here);
    grammar_builder_free(&w.b);
    if (s != OB_OK && error) *error = here;
    if (s != OB_OK && error && !error->where[0]) error_at(error, NULL, "tools", OB_NO_OFFSET);
    return s;
}
