/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_parse.c: see chat_parse.h. What has come and is not told waits in `in`; a state takes what
 * it can from its beginning, or waits for more:
 *
 *   BEFORE --> THINKING --> AFTER --> TEXT <--> CALL --> OVER (a single call was wanted)
 *      +-------------------------------^
 *
 * White space before the reasoning, around its inside, behind it and before a call is not told;
 * what ends the answer is. */
#include "text/chat_parse.h"

#include <stdlib.h>

#include "base/error.h"
#include "text/chat_parse_impl.h"

/* ---- formats and styles ---------------------------------------------------------------------- */

static const struct chat_format *const formats[] = {
#define FORMAT(name) &chat_format_##name,
#include "text/chat_formats.def"
#undef FORMAT
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static const struct chat_thought thoughts[] = {
#define THOUGHT(name, open, close) {name, open, close, NULL, false},
#include "text/chat_thoughts.def"
#undef THOUGHT
};
enum { THOUGHTS = sizeof thoughts / sizeof thoughts[0] };

const struct chat_format *chat_format_at(size_t i) { return i < FORMATS ? formats[i] : NULL; }
const char *chat_format_name(const struct chat_format *format) { return format->name; }
const char *chat_format_about(const struct chat_format *format) { return format->about; }

ob_status chat_format_find(const char *name, const struct chat_format **out, ob_error *error) {
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            buf_free(&names);
            return *out = formats[i], OB_OK;
        }
        buf_printf(&names, " %s", formats[i]->name);
    }
    error_set(error, OB_ERR_NOT_FOUND, "no tool format is called \"%.60s\"; there are%s", name,
              names.p ? names.p : "");
    error_at(error, NULL, "tool_format", OB_NO_OFFSET);
    buf_free(&names);
    return OB_ERR_NOT_FOUND;
}

/* Bytes of the markers, 0 if one is not in the source. */
static size_t fits(const struct chat_format *format, struct str source) {
    size_t sum = 0;
    for (size_t i = 0; i < CHAT_SOURCES && format->source[i]; i++) {
        if (!str_contains(source, format->source[i])) return 0;
        sum += strlen(format->source[i]);
    }
    return sum;
}

const struct chat_format *chat_format_of(struct str source) {
    const struct chat_format *best = &chat_format_generic;
    size_t most = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        size_t sum = fits(formats[i], source);
        if (sum > most) best = formats[i], most = sum;
    }
    return best;
}

const struct chat_thought *chat_thought_of(const struct chat_format *format, struct str source) {
    if (format && format->thought) return format->thought;
    for (size_t i = 0; i < THOUGHTS; i++)
        if (str_contains(source, thoughts[i].open) && str_contains(source, thoughts[i].close))
            return &thoughts[i];
    return &thoughts[THOUGHTS - 1];
}

const struct chat_thought *chat_thought_find(const char *name) {
    for (size_t i = 0; i < THOUGHTS; i++)
        if (strcmp(thoughts[i].name, name) == 0) return &thoughts[i];
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i]->thought && strcmp(formats[i]->thought->name, name) == 0)
            return formats[i]->thought;
    return NULL;
}

const char *chat_thought_name(const struct chat_thought *style) { return style->name; }
struct str chat_thought_open(const struct chat_thought *style) { return str_of(style->open); }
struct str chat_thought_close(const struct chat_thought *style) { return str_of(style->close); }
struct str chat_thought_end(const struct chat_thought *style) {
    return str_of(style->end ? style->end : style->close);
}

static struct str without_end_space(struct str text) {
    while (text.n && match_space(text.p[text.n - 1])) text.n--;
    return text;
}

bool chat_thought_is_open(const struct chat_thought *style, struct str prompt) {
    struct str open = without_end_space(str_of(style->open)), end = without_end_space(prompt);
    return end.n >= open.n && memcmp(end.p + end.n - open.n, open.p, open.n) == 0;
}

/* Bytes behind the last occurrence of the marker, n + 1 without one. */
static size_t since(struct str text, struct str mark) {
    for (size_t behind = 0; behind + mark.n <= text.n; behind++)
        if (memcmp(text.p + text.n - behind - mark.n, mark.p, mark.n) == 0) return behind;
    return text.n + 1;
}

bool chat_thought_is_inside(const struct chat_thought *style, struct str text) {
    return since(text, str_of(style->open)) < since(text, str_of(style->close));
}

static bool has(const char *pattern, struct str token) {
    size_t which = 1;
    if (pattern && token.n) match_find(str_of(pattern), 0, &token, 1, true, &which);
    return which == 0;
}

bool chat_format_needs(const struct chat_format *f, const struct chat_thought *style,
                       struct str token) {
    bool needs = style && (has(style->open, token) || has(style->close, token));
    if (!f) return needs;
    for (size_t i = 0; i < CHAT_CALLS; i++) needs |= has(f->call[i], token);
    for (size_t i = 0; i < CHAT_BARE; i++) needs |= has(f->bare[i], token);
    for (size_t i = 0; i < CHAT_SKIPS; i++) needs |= has(f->skip[i], token);
    return needs || has(f->parameter, token) || has(f->quote, token);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void add_mark(struct chat_parser *p, struct str text, enum chat_role role) {
    for (size_t i = 0; i < p->marks; i++)
        if (str_eq(p->mark[i], text)) return;
    if (!text.n || p->marks == CHAT_MARKS) return;
    p->mark[p->marks] = text;
    p->role[p->marks++] = role;
}

static void collect_marks(struct chat_parser *p) {
    const struct chat_format *f = p->options.format;
    const struct chat_thought *style = p->options.style;
    struct str open[CHAT_OPENS];
    for (size_t i = 0; p->options.calls && i < CHAT_CALLS && f->call[i]; i++) {
        size_t n = chat_pattern_opens(f->call[i], open);
        for (size_t k = 0; k < n; k++) add_mark(p, open[k], CHAT_MARK_CALL);
    }
    for (size_t i = 0; f && i < CHAT_SKIPS && f->skip[i]; i++)
        add_mark(p, str_of(f->skip[i]), CHAT_MARK_SKIP);
    if (style && style->anywhere) add_mark(p, str_of(style->open), CHAT_MARK_THOUGHT);
}

/* What the template has written of the answer comes first. */
static void begin_with_prompt(struct chat_parser *p, struct str prompt) {
    const char *begins = p->options.format ? p->options.format->prompt : NULL;
    if (!begins || !str_ends(prompt, begins)) return;
    buf_puts(&p->in, begins);
    p->swallow = p->in.n;
}

struct chat_parser *chat_parser_new(const struct chat_parser_options *options) {
    static const enum chat_state states[] = {
        [CHAT_BEGIN_ANSWER] = CHAT_BEFORE, [CHAT_BEGIN_REASONING] = CHAT_THINKING,
        [CHAT_BEGIN_CONTENT] = CHAT_TEXT};
    struct chat_parser *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->options = *options;
    p->options.calls = options->calls && options->format;
    p->state = options->style ? states[options->begin] : CHAT_TEXT;
    p->tools = json_deep_copy(options->tools);
    if (options->tools && !p->tools) return free(p), NULL;
    collect_marks(p);
    if (p->state != CHAT_THINKING) begin_with_prompt(p, options->prompt);
    p->options.prompt = (struct str){0};
    p->options.tools = p->tools;
    return p;
}

void chat_parser_free(struct chat_parser **parser) {
    struct chat_parser *p = *parser;
    if (!p) return;
    json_decref(p->tools);
    chat_call_free(&p->call);
    buf_free(&p->in);
    free(p);
    *parser = NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Tells in[at..end) and goes on behind it. */
static void tell(struct chat_parser *p, enum chat_kind kind, size_t end) {
    size_t from = p->at > p->swallow ? p->at : p->swallow;
    if (end > from) {
        struct chat_event event = {.kind = kind, .text = {p->in.p + from, end - from}};
        p->options.on(p->options.user, &event);
        if (kind == CHAT_REASONING) p->thought = true;
        else p->spoken = true, p->after_call = false;
    }
    if (end > p->at) p->at = end;
}

/* Where to go on looking: what is known to be white space is not looked at again. */
static size_t look_from(const struct chat_parser *p) {
    return p->looked > p->at ? p->looked : p->at;
}

static size_t skip_space(const struct chat_parser *p, size_t at) {
    while (at < p->in.n && match_space(p->in.p[at])) at++;
    return at;
}

/* Where the white space begins that ends in[..end), not before `at`. */
static size_t space_before(const struct chat_parser *p, size_t end) {
    size_t from = look_from(p);
    while (end > from && match_space(p->in.p[end - 1])) end--;
    return end <= from ? p->at : end;
}

/* Each returns false to wait for more text. */

static bool step_before(struct chat_parser *p) {
    size_t at = skip_space(p, look_from(p));
    p->looked = at;
    enum match match = at < p->in.n ? match_at(chat_parser_text(p), at,
                                               str_of(p->options.style->open))
                                    : MATCH_PART;
    if (match == MATCH_PART && !p->last) return false;
    p->state = match == MATCH_YES ? CHAT_THINKING : CHAT_TEXT;
    if (match == MATCH_YES) p->at = at + strlen(p->options.style->open);
    return true;
}

/* The markers that end the reasoning: its own first, and calls where they do. */
static size_t thought_ends(const struct chat_parser *p, struct str *out) {
    size_t n = 0;
    out[n++] = str_of(p->options.style->close);
    for (size_t i = 0; p->options.format && p->options.format->ends_thought && i < p->marks; i++)
        if (p->role[i] == CHAT_MARK_CALL) out[n++] = p->mark[i];
    return n;
}

static bool step_thinking(struct chat_parser *p) {
    struct str marks[CHAT_MARKS + 1];
    size_t which, n = thought_ends(p, marks);
    if (!p->thought) p->at = skip_space(p, p->at);
    size_t end = match_find(chat_parser_text(p), look_from(p), marks, n, p->last, &which);
    tell(p, CHAT_REASONING, space_before(p, end));
    if (which == n) {
        p->looked = end;
        if (p->last) p->at = p->in.n;
        return false;
    }
    p->at = which == 0 ? end + marks[0].n : end;
    p->state = CHAT_AFTER;
    p->after_thought = true;
    return true;
}

static bool step_after(struct chat_parser *p) {
    p->at = skip_space(p, p->at);
    if (p->at == p->in.n) return false;
    p->state = CHAT_TEXT;
    return true;
}

/* A call may begin at in[start]: the white space before it is kept until it is one. */
static void try_call(struct chat_parser *p, size_t start, bool bare) {
    tell(p, CHAT_CONTENT, space_before(p, start));
    if (chat_call_begin(p, start, bare, 0)) p->state = CHAT_CALL;
}

static bool is_skipped(const struct chat_parser *p, struct str mark) {
    for (size_t i = 0; i < CHAT_SKIPS && p->options.format->skip[i]; i++)
        if (str_is(mark, p->options.format->skip[i])) return true;
    return false;
}

static void skip_mark(struct chat_parser *p, size_t at, struct str mark) {
    const struct chat_format *f = p->options.format;
    bool says_nothing = !f->skip_after_thought || p->after_thought;
    tell(p, CHAT_CONTENT, says_nothing ? at : at + mark.n);
    p->at = at + mark.n;
}

static void think_again(struct chat_parser *p, size_t at, size_t n) {
    tell(p, CHAT_CONTENT, space_before(p, at));
    p->at = at + n;
    if (p->thought) {
        struct chat_event event = {.kind = CHAT_REASONING, .text = STR_LIT("\n")};
        p->options.on(p->options.user, &event);
        p->thought = false; /* the white space it begins with is not told */
    }
    p->state = CHAT_THINKING;
}

/* Whether an answer that begins like this may be a call that nothing marks. */
static bool may_be_bare(const struct chat_parser *p, size_t at) {
    const struct chat_format *f = p->options.format;
    return !p->spoken && p->options.calls && f->bare[0] && at < p->in.n &&
           (p->in.p[at] == '{' || p->in.p[at] == '[');
}

static bool step_text(struct chat_parser *p) {
    size_t which, at = skip_space(p, look_from(p));
    if (!p->marks && !p->options.calls) {
        tell(p, CHAT_CONTENT, p->in.n);
        return false;
    }
    if (may_be_bare(p, at)) {
        try_call(p, at, true);
        return true;
    }
    size_t end = match_find(chat_parser_text(p), look_from(p), p->mark, p->marks, p->last, &which);
    if (which == p->marks) {
        size_t stop = space_before(p, end);
        p->looked = end;
        bool nothing = p->after_call && stop == p->at;
        tell(p, CHAT_CONTENT, p->last && !nothing ? p->in.n : stop);
        if (p->last) p->at = p->in.n;
        return false;
    }
    if (p->role[which] == CHAT_MARK_CALL) try_call(p, end, false);
    else if (p->role[which] == CHAT_MARK_SKIP) skip_mark(p, end, p->mark[which]);
    else think_again(p, end, p->mark[which].n);
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call has ended at in[end]. */
static void call_over(struct chat_parser *p, size_t end) {
    p->at = end;
    p->after_call = true;
    p->state = p->options.single && p->calls ? CHAT_OVER : p->spoken ? CHAT_TEXT : CHAT_AFTER;
}

/* No pattern fits: what began it is content, and a call may begin right behind. */
static void no_call(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    size_t which, n = 1;
    if (!c->bare) {
        match_find(chat_parser_text(p), c->start, p->mark, p->marks, true, &which);
        n = p->mark[which].n;
        if (is_skipped(p, p->mark[which])) {
            skip_mark(p, c->start, p->mark[which]);
            p->state = CHAT_TEXT;
            return;
        }
    }
    tell(p, CHAT_CONTENT, c->start + n);
    p->spoken = true; /* even if the prompt wrote it all */
    p->state = CHAT_TEXT;
}

static bool step_call(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    enum chat_step s = chat_call_run(p);
    if (s == CHAT_WAIT) return false;
    if (s == CHAT_ON) {
        call_over(p, c->pos);
    } else if (c->begun) { /* live: cannot be taken back */
        p->calls++;
        p->spoken = true;
        call_over(p, c->pos);
    } else if (c->done) {
        call_over(p, c->done_at);
    } else if (!chat_call_begin(p, c->start, c->bare, c->pattern + 1)) {
        no_call(p);
    }
    return true;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static bool step(struct chat_parser *p) {
    switch (p->state) {
    case CHAT_BEFORE: return step_before(p);
    case CHAT_THINKING: return step_thinking(p);
    case CHAT_AFTER: return step_after(p);
    case CHAT_TEXT: return step_text(p);
    case CHAT_CALL: return step_call(p);
    default: p->at = p->in.n; return false;
    }
}

static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

/* Drops what was told. */
static void compact(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    size_t n = p->at;
    if (!n) return;
    memmove(p->in.p, p->in.p + n, p->in.n - n);
    p->in.n -= n;
    p->at = 0;
    p->swallow = less(p->swallow, n);
    p->looked = less(p->looked, n);
    c->start = less(c->start, n);
    c->pos = less(c->pos, n);
    c->mark = less(c->mark, n);
    c->done_at = less(c->done_at, n);
}

static void run(struct chat_parser *p) {
    if (p->in.failed) p->failed = true;
    while (step(p)) {
    }
    compact(p);
}

void chat_parser_add(struct chat_parser *p, struct str text) {
    if (!text.n) return;
    buf_add(&p->in, text.p, text.n);
    run(p);
}

void chat_parser_end(struct chat_parser *p) {
    p->last = true;
    run(p);
}

bool chat_parser_is_thinking(const struct chat_parser *p) { return p->state == CHAT_THINKING; }
unsigned chat_parser_calls(const struct chat_parser *p) { return p->calls; }
bool chat_parser_failed(const struct chat_parser *p) { return p->failed || p->in.failed; }
