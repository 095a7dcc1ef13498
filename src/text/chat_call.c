/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_call.c: follows a format's pattern through the text of a call; chat_parse_impl.h says what
 * patterns are. Every decision waits for the bytes it needs, so where the text is cut changes
 * nothing. A call that is not whole has told nothing yet, unless it is told live: then from the
 * first byte of its arguments on, wherever that byte comes. */
#include "text/chat_loose.h"
#include "text/chat_parse_impl.h"

#include "base/rng.h"

enum { NAME_MAX_BYTES = 256 };
enum { ROLE_NONE, ROLE_NAME, ROLE_ID, ROLE_ARGUMENTS, ROLE_TEXT }; /* TEXT: arguments in a string */

static struct str str_buf(const struct buf *buf) {
    return (struct str){buf->p ? buf->p : "", buf->n};
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void make_id(const struct chat_parser *p, struct buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    unsigned n = p->options.format->short_ids ? 9 : 24;
    if (n > 9) buf_puts(out, "call_");
    for (unsigned i = 0; i < n; i++)
        buf_putc(out, digits[rng_u64(p->options.seed, p->calls * 32ull + i) % (sizeof digits - 1)]);
}

static void tell(struct chat_parser *p, enum chat_kind kind) {
    struct chat_call *c = &p->call;
    struct chat_event event = {.kind = kind, .index = p->calls, .id = str_buf(&c->id),
                               .name = str_buf(&c->name), .text = str_buf(&c->args)};
    if (c->id.failed || c->name.failed || c->args.failed) p->failed = true;
    else p->options.on(p->options.user, &event);
}

/* Tells the arguments so far, the call first. False: no call may have that name. */
static bool flow(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (!c->begun) {
        if (c->must_know && !chat_value_knows(p->tools, str_buf(&c->name))) return false;
        if (!c->id.n) make_id(p, &c->id);
        tell(p, CHAT_TOOL);
        c->begun = true;
    }
    if (c->args.n) tell(p, CHAT_ARGUMENTS);
    buf_clear(&c->args);
    return true;
}

/* Arguments have begun, or a name was found behind them. */
static enum chat_step may_flow(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (!p->options.live || c->begun || !c->args.n || !c->name.n) return CHAT_ON;
    return flow(p) ? CHAT_ON : CHAT_FAIL;
}

static void clear_call(struct chat_call *c) {
    buf_clear(&c->name);
    buf_clear(&c->id);
    buf_clear(&c->args);
    c->begun = false;
    c->parameters = 0;
}

static enum chat_step call_done(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (!c->name.n) return CHAT_FAIL;
    if (!c->begun && !c->args.n) buf_puts(&c->args, "{}");
    if (!flow(p)) return CHAT_FAIL;
    p->calls++;
    clear_call(c);
    c->done++;
    c->done_at = c->pos;
    return CHAT_ON;
}

/* ---- pieces of patterns ---------------------------------------------------------------------- */

static size_t literal_length(const char *pc) { return strcspn(pc, "%"); }

size_t chat_pattern_opens(const char *pattern, struct str out[CHAT_OPENS]) {
    size_t n = 0;
    while (*pattern == '%') {
        bool group = pattern[1] == '(' && n + 1 < CHAT_OPENS;
        pattern += 2;
        if (!group) continue;
        out[n] = (struct str){pattern, literal_length(pattern)};
        pattern += out[n++].n + 2;
    }
    size_t length = literal_length(pattern);
    if (length) out[n++] = (struct str){pattern, length};
    return n;
}

/* The text that ends what is read now: the next in the pattern. */
static struct str next_literal(const char *pc) {
    while (*pc == '%') pc += 2;
    return (struct str){pc, literal_length(pc)};
}

static enum chat_step wait_or(const struct chat_parser *p, enum chat_step otherwise) {
    return p->last ? otherwise : CHAT_WAIT;
}

static enum chat_step literal(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    struct str mark = {c->pc, literal_length(c->pc)};
    enum match match = match_at(chat_parser_text(p), c->pos, mark);
    if (match == MATCH_PART && !p->last) return CHAT_WAIT;
    if (match == MATCH_YES) c->pos += mark.n;
    else if (!c->whole) return CHAT_FAIL;
    c->pc += mark.n;
    return CHAT_ON;
}

/* %( text %) */
static enum chat_step group(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    struct str mark = {c->pc, literal_length(c->pc)};
    enum match match = match_at(chat_parser_text(p), c->pos, mark);
    if (match == MATCH_PART && !p->last) return CHAT_WAIT;
    if (match == MATCH_YES) c->pos += mark.n;
    c->pc += mark.n + 2;
    return CHAT_ON;
}

/* WAIT at the end of the text, where more may come. */
static enum chat_step space(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    while (c->pos < p->in.n && match_space(p->in.p[c->pos])) c->pos++;
    return c->pos < p->in.n ? CHAT_ON : wait_or(p, CHAT_ON);
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-.:/", c));
}

static enum chat_step word(struct chat_parser *p, struct buf *out) {
    struct chat_call *c = &p->call;
    size_t end = c->pos;
    while (end < p->in.n && is_name(p->in.p[end])) end++;
    if (end - c->pos > NAME_MAX_BYTES) return CHAT_FAIL;
    if (end == p->in.n && !p->last) return CHAT_WAIT;
    if (end == c->pos) return CHAT_FAIL;
    buf_clear(out);
    buf_add(out, p->in.p + c->pos, end - c->pos);
    c->pos = end;
    return CHAT_ON;
}

/* %F: the id is all of it, the name what stands between the prefix and the index. */
static enum chat_step function_id(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    enum chat_step s = word(p, &c->id);
    if (s != CHAT_ON || c->id.failed) return s;
    struct str name = str_buf(&c->id);
    if (str_starts(name, "functions.")) name.p += 10, name.n -= 10;
    size_t colon = name.n;
    while (colon && name.p[colon - 1] != ':') colon--;
    if (colon) name.n = colon - 1;
    buf_clear(&c->name);
    buf_add(&c->name, name.p, name.n);
    if (!colon) buf_clear(&c->id); /* that is no id */
    return c->name.n ? CHAT_ON : CHAT_FAIL;
}

/* The text before the next literal of the pattern, at most a name's length. */
static enum chat_step until_literal(struct chat_parser *p, struct buf *out) {
    struct chat_call *c = &p->call;
    struct str mark = next_literal(c->pc), text = chat_parser_text(p);
    size_t most = c->pos + NAME_MAX_BYTES + mark.n;
    if (text.n > most) text.n = most; /* a name is not looked for in all of a long text */
    size_t which, end = match_find(text, c->pos, &mark, 1, p->last, &which);
    if (end - c->pos > NAME_MAX_BYTES) return CHAT_FAIL;
    if (which) return wait_or(p, CHAT_FAIL);
    if (out) buf_clear(out);
    if (out) buf_add(out, p->in.p + c->pos, end - c->pos);
    c->pos = end;
    return CHAT_ON;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A byte of the arguments, as it goes to the client. */
static void put_argument(struct chat_call *c, char byte) {
    if ((unsigned char)byte < 0x20 && scan_in_string(&c->scan))
        scan_put_string(&c->args, (struct str){&byte, 1});
    else
        buf_putc(&c->args, byte);
}

/* %J */
static enum chat_step arguments(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (!c->reading) {
        enum chat_step s = space(p);
        if (s != CHAT_ON) return s;
        if (c->pos == p->in.n || p->in.p[c->pos] != '{') return CHAT_FAIL;
        c->scan = (struct scan)SCAN_INIT;
        c->reading = true;
    }
    while (c->pos < p->in.n) {
        put_argument(c, p->in.p[c->pos]);
        int what = scan_byte(&c->scan, p->in.p[c->pos]);
        if (what & SCAN_BAD) {
            if (c->args.n) c->args.n--;
            return CHAT_FAIL;
        }
        c->pos++;
        if (may_flow(p) == CHAT_FAIL) return CHAT_FAIL;
        if (scan_is_whole(&c->scan)) return c->reading = false, CHAT_ON;
    }
    return wait_or(p, CHAT_FAIL);
}

/* What a member of a call's object is. */
static unsigned role_of(const struct chat_parser *p, struct str key, char first) {
    const struct chat_call *c = &p->call;
    if (p->options.format->name_is_key) return ROLE_ARGUMENTS;
    bool wraps = str_is(key, "function") || str_is(key, "tool_call");
    if (str_is(key, "name") || str_is(key, "tool_name") || (wraps && first == '"'))
        return first == '"' ? ROLE_NAME : ROLE_NONE;
    if (str_is(key, "arguments") || str_is(key, "parameters"))
        return c->args.n || c->begun ? ROLE_NONE : first == '"' ? ROLE_TEXT : ROLE_ARGUMENTS;
    if (str_is(key, "id") && first == '"' && !c->args.n && !c->begun) return ROLE_ID;
    return ROLE_NONE;
}

/* A string's text, without its quotes, decoded. */
static void take_string(struct chat_parser *p, struct buf *out) {
    struct chat_call *c = &p->call;
    buf_clear(out);
    scan_put_decoded(out, (struct str){p->in.p + c->mark + 1, c->pos - c->mark - 1});
}

/* A member's value begins at pos. */
static enum chat_step value_begins(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    char first = p->in.p[c->pos];
    struct str key = str_buf(&c->key);
    if (first == '{' && !p->options.format->name_is_key &&
        (str_is(key, "function") || str_is(key, "tool_call")) && c->level == 1) {
        c->level = 2;
        return CHAT_ON;
    }
    c->role = role_of(p, key, first);
    if (c->role == ROLE_ARGUMENTS && first == 'n') c->role = ROLE_NONE; /* null: there are none */
    if (c->role == ROLE_ARGUMENTS && first != '{') return CHAT_FAIL;
    if (p->options.format->name_is_key) {
        if (c->name.n) return CHAT_FAIL;
        buf_add(&c->name, key.p, key.n);
    }
    c->mark = c->pos;
    return CHAT_ON;
}

/* And ends at pos, which is its last byte. */
static enum chat_step value_ends(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    unsigned role = c->role;
    c->role = ROLE_NONE;
    if (role == ROLE_ID) take_string(p, &c->id);
    if (role == ROLE_NAME && !c->begun) take_string(p, &c->name);
    if (role == ROLE_TEXT) {
        take_string(p, &c->args);
        struct str text = str_buf(&c->args);
        if (!scan_is_json(text) || text.p[strspn(text.p, " \n\r\t")] != '{') return CHAT_FAIL;
    }
    return may_flow(p);
}

/* A byte of a call's object, at pos; `what` it was to the scanner, `depth` the level before. */
static enum chat_step object_byte(struct chat_parser *p, int what, unsigned depth) {
    struct chat_call *c = &p->call;
    unsigned after = c->scan.depth;
    if (what & SCAN_KEY && depth == c->level) {
        if (what & SCAN_BEGINS) c->mark = c->pos;
        if (what & SCAN_ENDS) take_string(p, &c->key);
        return CHAT_ON;
    }
    if (what & SCAN_BEGINS && !(what & SCAN_KEY) && depth == c->level) {
        enum chat_step s = value_begins(p);
        if (s != CHAT_ON) return s;
    }
    if (c->role == ROLE_ARGUMENTS) {
        put_argument(c, p->in.p[c->pos]);
        if (may_flow(p) == CHAT_FAIL) return CHAT_FAIL;
    }
    if (what & SCAN_ENDS && !(what & SCAN_KEY) && after == c->level) return value_ends(p);
    if (what & SCAN_ENDS && c->level == 2 && after == 1) c->level = 1;
    return CHAT_ON;
}

/* An object of %A, from { to }. */
static enum chat_step object(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    while (c->pos < p->in.n) {
        unsigned depth = c->scan.depth;
        int what = scan_byte(&c->scan, p->in.p[c->pos]);
        if (what & SCAN_BAD || object_byte(p, what, depth) == CHAT_FAIL) return CHAT_FAIL;
        c->pos++;
        if (!scan_is_whole(&c->scan)) continue;
        c->reading = false;
        /* what is not marked as a call must look like one */
        if (c->must_know && !c->begun && !c->args.n) return CHAT_FAIL;
        return call_done(p);
    }
    return wait_or(p, CHAT_FAIL);
}

/* ---- several calls: %A and %Y ---------------------------------------------------------------- */

/* What stands between two calls. *next: a call begins at pos; else the list has ended. */
static enum chat_step between(struct chat_parser *p, bool (*begins)(char), bool *next) {
    struct chat_call *c = &p->call;
    *next = false;
    for (; c->pos < p->in.n; c->pos++) {
        char byte = p->in.p[c->pos];
        if (begins(byte)) return *next = true, CHAT_ON;
        if (byte == '[' && !c->done && !c->array) c->array = true;
        else if (byte == ']' && c->array && c->done) return c->array = false, c->pos++, CHAT_ON;
        else if (!match_space(byte) && !(c->done && (byte == ',' || byte == ';')))
            return c->array || !c->done ? CHAT_FAIL : CHAT_ON;
    }
    return wait_or(p, c->done ? CHAT_ON : CHAT_FAIL);
}

static bool begins_object(char c) { return c == '{'; }

static enum chat_step objects(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    for (;;) {
        bool next = true;
        enum chat_step s = c->reading ? CHAT_ON : between(p, begins_object, &next);
        if (s != CHAT_ON || !next) return s;
        if (!c->reading) {
            c->scan = (struct scan)SCAN_INIT;
            c->level = 1;
            c->role = ROLE_NONE;
            c->reading = true;
        }
        s = object(p);
        if (s != CHAT_ON || p->options.single) return s;
    }
}

static bool begins_call(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The byte of a loose value at in[mark]: brackets and quotes. False: more must come. */
static bool nest_byte(struct chat_parser *p, struct str quote) {
    struct chat_call *c = &p->call;
    struct str text = chat_parser_text(p);
    char byte = text.p[c->mark];
    bool mark = quote.n && byte == quote.p[0] && (!c->quoted || c->quoted == byte);
    enum match match = mark ? match_at(text, c->mark, quote) : MATCH_NO;
    if (match == MATCH_PART || (byte == '\\' && c->mark + 1 == text.n)) return false;
    bool ends = match == MATCH_YES || byte == '"' || byte == '\'';
    if (c->quoted && byte == '\\' && (c->quoted == '"' || c->quoted == '\'')) c->mark++;
    else if (ends && (!c->quoted || c->quoted == byte)) c->quoted = c->quoted ? 0 : byte;
    else if (!c->quoted && (byte == '(' || byte == '[' || byte == '{')) c->nest++;
    else if (!c->quoted && (byte == ')' || byte == ']' || byte == '}')) c->nest -= c->nest > 0;
    c->mark += match == MATCH_YES ? quote.n : 1;
    return true;
}

/* Whether the brackets that a loose value begins with may be closed: only then is it read, so that
 * each byte is looked at once, however many brackets come. */
static bool may_close(struct chat_parser *p, struct str quote) {
    struct chat_call *c = &p->call;
    if (p->last) return true;
    if (c->mark < c->pos) c->mark = c->pos, c->nest = 0, c->quoted = 0;
    while (c->mark < p->in.n) {
        char byte = p->in.p[c->mark];
        bool inside = c->quoted;
        if (!nest_byte(p, quote)) break;
        if (!inside && !c->nest && (byte == ')' || byte == ']' || byte == '}')) return true;
    }
    return false;
}

/* A loose value is all there, or more of it must come; what cannot be one fails only then. */
static enum chat_step loosely(struct chat_parser *p, enum loose s) {
    if (s == LOOSE_OK) return CHAT_ON;
    buf_clear(&p->call.args);
    return s == LOOSE_MORE ? wait_or(p, CHAT_FAIL) : CHAT_FAIL;
}

static enum chat_step python_call(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    struct str name = {0};
    if (!may_close(p, (struct str){0})) return CHAT_WAIT;
    enum chat_step s = loosely(p, loose_call(chat_parser_text(p), &c->pos, &name, &c->args));
    if (s != CHAT_ON) return s;
    if (str_ends(name, ".call")) name.n -= 5;
    c->mark = 0;
    buf_clear(&c->name);
    buf_add(&c->name, name.p, name.n);
    return call_done(p);
}

static enum chat_step python_calls(struct chat_parser *p) {
    for (;;) {
        bool next;
        enum chat_step s = between(p, begins_call, &next);
        if (s != CHAT_ON || !next) return s;
        s = python_call(p);
        if (s != CHAT_ON || p->options.single) return s;
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* %P: the next parameter, or the end of them. */
static enum chat_step parameters(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    const char *parameter = p->options.format->parameter;
    enum match match = match_at(chat_parser_text(p), c->pos,
                                (struct str){parameter, literal_length(parameter)});
    if (match == MATCH_PART && !p->last) return CHAT_WAIT;
    if (match == MATCH_YES) {
        buf_puts(&c->args, c->parameters++ ? ", " : "{");
        c->back = c->pc;
        c->pc = parameter;
        c->string = false;
        return may_flow(p);
    }
    if (c->parameters) buf_putc(&c->args, '}');
    c->pc += 2;
    return CHAT_ON;
}

static void put_key(struct chat_call *c) {
    buf_putc(&c->args, '"');
    scan_put_string(&c->args, str_buf(&c->key));
    buf_puts(&c->args, "\": ");
}

/* More of a string's value; `end`: where it is known to reach. */
static void put_text(struct chat_parser *p, size_t end) {
    struct chat_call *c = &p->call;
    scan_put_string(&c->args, (struct str){p->in.p + c->pos, end - c->pos});
    c->pos = end;
}

/* %V begins: its type, its quote, and the line end in front of it. */
static enum chat_step value_opens(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    bool lines = p->options.format->lines;
    if (lines && c->pos == p->in.n) return wait_or(p, CHAT_FAIL);
    if (lines && p->in.p[c->pos] == '\n') c->pos++;
    if (!c->string)
        c->string = chat_value_type(p->tools, str_buf(&c->name), str_buf(&c->key)) ==
                    CHAT_TYPE_STRING && !strstr(p->options.format->parameter, "<param ");
    put_key(c);
    if (c->string) buf_putc(&c->args, '"');
    c->mark = c->pos;
    c->reading = true;
    return CHAT_ON;
}

/* %V: strings flow as they come, anything else is read when it is whole. */
static enum chat_step value(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    bool lines = p->options.format->lines;
    struct str mark = next_literal(c->pc + 2);
    if (!c->reading) {
        enum chat_step s = p->no_end ? CHAT_FAIL : value_opens(p);
        if (s != CHAT_ON) return s;
    }
    size_t which, end = match_find(chat_parser_text(p), c->pos, &mark, 1, p->last, &which);
    size_t stop = end > c->mark && lines && p->in.p[end - 1] == '\n' ? end - 1 : end;
    if (c->string && stop > c->pos) put_text(p, stop);
    if (which && p->last) p->no_end = true; /* nor does one that begins behind this one */
    if (which && p->last && !c->string) c->pos = c->mark;
    if (which && !c->string && !p->last) c->pos = end;
    if (which) return wait_or(p, CHAT_FAIL);
    if (c->string) buf_putc(&c->args, '"');
    else chat_value_put(&c->args, (struct str){p->in.p + c->mark, stop - c->mark},
                        chat_value_type(p->tools, str_buf(&c->name), str_buf(&c->key)));
    c->pos = end;
    c->reading = false;
    c->pc += 2;
    return CHAT_ON;
}

/* %T: the words that say a value is a string. */
static enum chat_step type(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    struct buf word = BUF_INIT;
    enum chat_step s = until_literal(p, &word);
    struct str said = str_buf(&word);
    if (s == CHAT_ON) c->string = str_is(said, "true") || str_is(said, "string");
    buf_free(&word);
    return s;
}

/* ---- the pattern ----------------------------------------------------------------------------- */

/* %G */
static enum chat_step gemma_arguments(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (c->pos == p->in.n) return wait_or(p, CHAT_FAIL);
    if (p->in.p[c->pos] != '{') return CHAT_FAIL;
    struct str quote = str_of(p->options.format->quote);
    if (!may_close(p, quote)) return CHAT_WAIT;
    enum chat_step s =
        loosely(p, loose_value(chat_parser_text(p), &c->pos, quote, &c->args));
    if (s == CHAT_ON) c->mark = 0;
    return s;
}

static enum chat_step operation(struct chat_parser *p, char name) {
    struct chat_call *c = &p->call;
    switch (name) {
    case '_': return space(p);
    case 'N': return word(p, &c->name);
    case 'I': return word(p, &c->id);
    case 'F': return function_id(p);
    case '*': return until_literal(p, NULL);
    case 'K': return until_literal(p, &c->key);
    case 'T': return type(p);
    case 'J': return arguments(p);
    case 'G': return gemma_arguments(p);
    case 'A': return objects(p);
    case 'Y': return python_calls(p);
    case '!': c->must_know = true; return CHAT_ON;
    default: /* '.' */
        c->whole = true;
        return c->done ? CHAT_ON : call_done(p);
    }
}

static enum chat_step step(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    if (*c->pc != '%') return literal(p);
    if (c->pc[1] == 'P') return parameters(p);
    if (c->pc[1] == 'V') return value(p);
    if (c->pc[1] == '(') {
        c->pc += 2;
        enum chat_step s = group(p);
        if (s == CHAT_WAIT) c->pc -= 2;
        return s;
    }
    enum chat_step s = operation(p, c->pc[1]);
    if (s == CHAT_ON) c->pc += 2;
    return s;
}

enum chat_step chat_call_run(struct chat_parser *p) {
    struct chat_call *c = &p->call;
    for (;;) {
        bool enough = p->options.single && c->done;
        if (enough || (!*c->pc && !c->back)) return CHAT_ON;
        if (!*c->pc) {
            c->pc = c->back; /* %P again */
            c->back = NULL;
        }
        enum chat_step s = step(p);
        if (s == CHAT_ON) continue;
        if (p->options.live && c->begun) flow(p);
        return s == CHAT_FAIL && c->whole ? CHAT_ON : s;
    }
}

bool chat_call_begin(struct chat_parser *p, size_t start, bool bare, size_t pattern) {
    const struct chat_format *f = p->options.format;
    struct chat_call *c = &p->call;
    const char *pc = bare ? pattern < CHAT_BARE ? f->bare[pattern] : NULL
                          : pattern < CHAT_CALLS ? f->call[pattern] : NULL;
    if (!pc) return false;
    clear_call(c);
    *c = (struct chat_call){.pc = pc, .pattern = pattern, .bare = bare, .start = start,
                            .pos = start, .name = c->name, .id = c->id, .key = c->key,
                            .args = c->args};
    return true;
}

void chat_call_free(struct chat_call *call) {
    buf_free(&call->name);
    buf_free(&call->id);
    buf_free(&call->key);
    buf_free(&call->args);
}
