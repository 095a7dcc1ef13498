/* SPDX-License-Identifier: Apache-2.0
 *
 * gbnf.c: GBNF as llama.cpp reads it.
 *
 *   rules    = { name "::=" alternates newline }        a name: letters, digits, "-"
 *   alternates = sequence { "|" sequence }              a newline may follow "::=" and "|"
 *   sequence = { item [ "*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}" ] }
 *   item     = "text" | [class] | [^class] | . | name | ( alternates ) | token
 *   token    = <[id]> | <text> | !<[id]> | !<text>
 *
 * Inside parentheses newlines are spaces; "#" starts a comment. A name defined twice means what the
 * last definition says. Differences, all of them refusals of what can match nothing or only by
 * mistake, stand in docs/structured.md. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "sample/schema/list.h"
#include "sample/schema/schema.h"

struct reader {
    struct grammar_builder *b;
    const struct sample_vocab *vocab;
    const char *start, *p, *end;
    unsigned depth;
    ob_error *error;
    ob_status status; /* the first error's; reading goes on as if at the end */
};

/* ---- where and what -------------------------------------------------------------------------- */

/* 0 at the end, and after an error. */
static char peek(const struct reader *r) { return r->p < r->end ? *r->p : 0; }
static char peek_next(const struct reader *r) { return r->end - r->p > 1 ? r->p[1] : 0; }

/* Columns count characters. */
static void refuse(struct reader *r, const char *at, const char *what) {
    unsigned line = 1, column = 1;
    if (r->status != OB_OK) return;
    for (const char *p = r->start; p < at; p++) {
        column += ((unsigned char)*p & 0xc0) != 0x80;
        if (*p == '\n') line++, column = 1;
    }
    r->status = error_set(r->error, OB_ERR_ARGUMENT, "line %u, column %u: %s", line, column, what);
    r->p = r->end;
}

static void skip_space(struct reader *r, bool newlines) {
    for (; r->p < r->end; r->p++) {
        if (*r->p == '#')
            while (r->end - r->p > 1 && r->p[1] != '\n' && r->p[1] != '\r') r->p++;
        else if (*r->p != ' ' && *r->p != '\t' &&
                 !(newlines && (*r->p == '\n' || *r->p == '\r')))
            return;
    }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

static struct str read_name(struct reader *r) {
    const char *from = r->p;
    while (is_word(peek(r))) r->p++;
    if (r->p == from) refuse(r, from, "a name is missing (of letters, digits and \"-\")");
    return (struct str){from, (size_t)(r->p - from)};
}

static uint32_t read_number(struct reader *r) {
    const char *from = r->p;
    uint64_t n = 0;
    for (; is_digit(peek(r)); r->p++)
        if (n < GRAMMAR_NO_LIMIT) n = n * 10 + (uint64_t)(*r->p - '0');
    if (r->p == from) refuse(r, from, "a number is missing");
    if (n >= GRAMMAR_NO_LIMIT) refuse(r, from, "this number is too large");
    return n < GRAMMAR_NO_LIMIT ? (uint32_t)n : 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

static uint32_t read_hex(struct reader *r, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++, r->p++) {
        char c = peek(r);
        unsigned d = is_digit(c) ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
        if (d == 16) {
            refuse(r, r->p, digits == 2   ? "\\x needs 2 hexadecimal digits"
                            : digits == 4 ? "\\u needs 4 hexadecimal digits"
                                          : "\\U needs 8 hexadecimal digits");
            return 0;
        }
        code = code << 4 | d;
    }
    return code;
}

static uint32_t read_escape(struct reader *r) {
    const char *from = r->p++;
    char c = peek(r);
    if (r->p < r->end) r->p++;
    switch (c) {
    case 't': return '\t';
    case 'r': return '\r';
    case 'n': return '\n';
    case '\\': case '"': case '[': case ']': case '-': return (unsigned char)c;
    case 'x': return read_hex(r, 2);
    case 'u': return read_hex(r, 4);
    case 'U': return read_hex(r, 8);
    default:
        refuse(r, from, "no such escape: there are \\t \\r \\n \\\\ \\\" \\[ \\] \\- \\x \\u \\U");
        return 0;
    }
}

/* A code point as written in a text or class. */
static uint32_t read_char(struct reader *r) {
    const char *from = r->p;
    uint32_t code;
    if (r->p >= r->end) {
        refuse(r, r->p, "the grammar ends inside a text or class");
        return 0;
    }
    if (*r->p == '\\') {
        code = read_escape(r);
    } else {
        r->p += utf8_decode(r->p, (size_t)(r->end - r->p), &code);
    }
    if (code > 0x10ffff) {
        refuse(r, from, code == UTF8_BAD ? "this is not UTF-8" : "there is no such code point");
        code = 0;
    }
    return code;
}

static grammar_expr read_text(struct reader *r) {
    const char *from = r->p++;
    struct buf text = BUF_INIT;
    while (r->status == OB_OK && peek(r) != '"') {
        const char *at = r->p;
        uint32_t code = read_char(r);
        char bytes[4];
        if (code >= 0xd800 && code < 0xe000)
            refuse(r, at, "half of a surrogate pair is no character: write \\U and 8 digits");
        else
            buf_add(&text, bytes, utf8_encode(code, bytes));
    }
    if (r->p < r->end) r->p++;
    if (text.failed && r->status == OB_OK)
        r->status = error_memory(r->error, "a grammar", (size_t)(r->p - from));
    grammar_expr out = text.n ? grammar_text(r->b, (struct str){text.p, text.n})
                              : grammar_empty(r->b);
    buf_free(&text);
    return out;
}

static grammar_expr read_class(struct reader *r) {
    const char *from = r->p++;
    struct list ranges = LIST_INIT(sizeof(struct grammar_range));
    bool negated = peek(r) == '^';
    r->p += negated;
    while (r->status == OB_OK && peek(r) != ']') {
        const char *at = r->p;
        uint32_t low = read_char(r), high = low;
        if (peek(r) == '-' && peek_next(r) != ']') {
            r->p++;
            high = read_char(r);
        }
        if (low > high) refuse(r, at, "this range ends before it begins");
        *(struct grammar_range *)list_add(&ranges) = (struct grammar_range){low, high};
    }
    if (r->status == OB_OK && ranges.n == 0) refuse(r, from, "this class is empty");
    if (r->p < r->end) r->p++;
    if (ranges.failed && r->status == OB_OK) r->status = error_memory(r->error, "a grammar", 0);
    grammar_expr out = grammar_class(r->b, ranges.p, ranges.n, negated);
    list_free(&ranges);
    return out;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The token that prints so; -1: none. */
static int32_t find_token(const struct sample_vocab *vocab, struct str text) {
    struct buf piece = BUF_INIT;
    int32_t found = -1;
    for (uint32_t id = 0; vocab && vocab->piece && id < vocab->size && found < 0; id++) {
        buf_clear(&piece);
        vocab->piece(vocab->user, (int32_t)id, true, &piece);
        if (str_eq(text, (struct str){piece.p, piece.n})) found = (int32_t)id;
    }
    buf_free(&piece);
    return found;
}

static grammar_expr read_token(struct reader *r) {
    const char *from = r->p;
    bool negated = peek(r) == '!';
    int32_t id = -1;
    r->p += negated;
    if (peek(r) != '<') refuse(r, r->p, "\"!\" stands before a token: !<[id]> or !<text>");
    const char *open = r->p;
    if (peek_next(r) == '[') {
        r->p += 2;
        id = (int32_t)read_number(r);
        if (peek(r) != ']' || peek_next(r) != '>') refuse(r, r->p, "\"]>\" is missing");
        if (r->vocab && (uint32_t)id >= r->vocab->size)
            refuse(r, open, "this id is not in the vocabulary");
        if (r->p < r->end) r->p += 2;
    } else {
        while (r->p < r->end && *r->p != '>') r->p++;
        if (r->p >= r->end) refuse(r, open, "\">\" is missing");
        if (r->p < r->end) r->p++;
        struct str text = {open, (size_t)(r->p - open)};
        if (r->status == OB_OK) id = find_token(r->vocab, text);
        if (id < 0) refuse(r, from, "the vocabulary has no token of this text");
    }
    return r->status == OB_OK ? grammar_token(r->b, id, negated) : 0;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static grammar_expr read_alternates(struct reader *r, bool nested);

static grammar_expr read_group(struct reader *r) {
    const char *from = r->p++;
    if (++r->depth > SCHEMA_DEPTH) refuse(r, from, "too many groups inside one another");
    skip_space(r, true);
    grammar_expr out = read_alternates(r, true);
    if (peek(r) != ')') refuse(r, r->p, "\")\" is missing");
    else r->p++;
    r->depth--;
    return out;
}

/* An item, or 0 where there is none. */
static grammar_expr read_item(struct reader *r) {
    char c = peek(r);
    if (c == '"') return read_text(r);
    if (c == '[') return read_class(r);
    if (c == '(') return read_group(r);
    if (c == '<' || c == '!') return read_token(r);
    if (is_word(c)) {
        struct str name = read_name(r);
        return grammar_use(r->b, grammar_rule_named(r->b, name));
    }
    if (c != '.') return 0;
    r->p++;
    return grammar_class(r->b, NULL, 0, true);
}

/* "{m}", "{m,}", "{m,n}" */
static void read_counts(struct reader *r, bool nested, uint32_t *min, uint32_t *max) {
    const char *from = r->p++;
    skip_space(r, nested);
    *max = *min = read_number(r);
    skip_space(r, nested);
    if (peek(r) == ',') {
        r->p++;
        skip_space(r, nested);
        *max = is_digit(peek(r)) ? read_number(r) : GRAMMAR_NO_LIMIT;
        skip_space(r, nested);
    }
    if (peek(r) != '}') refuse(r, r->p, "\"}\" is missing");
    else r->p++;
    if (*min > *max) refuse(r, from, "the first count is greater than the second");
}

/* What may follow an item, any number of times. */
static grammar_expr read_repeats(struct reader *r, grammar_expr item, bool nested) {
    for (;;) {
        uint32_t min = 0, max = GRAMMAR_NO_LIMIT;
        char c = peek(r);
        if (c == '{') {
            read_counts(r, nested, &min, &max);
        } else if (c == '*' || c == '+' || c == '?') {
            min = c == '+';
            max = c == '?' ? 1 : GRAMMAR_NO_LIMIT;
            r->p++;
        } else {
            return item;
        }
        skip_space(r, nested);
        item = grammar_repeat(r->b, item, min, max);
    }
}

static grammar_expr read_sequence(struct reader *r, bool nested) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    while (r->status == OB_OK && !grammar_builder_failed(r->b)) {
        grammar_expr item = read_item(r);
        if (!item) break;
        skip_space(r, nested);
        *(grammar_expr *)list_add(&parts) = read_repeats(r, item, nested);
    }
    if (strchr("*+?{", peek(r)) && peek(r)) refuse(r, r->p, "there is nothing to repeat");
    if (parts.failed && r->status == OB_OK) r->status = error_memory(r->error, "a grammar", 0);
    grammar_expr out = grammar_seq(r->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

static grammar_expr read_alternates(struct reader *r, bool nested) {
    struct list parts = LIST_INIT(sizeof(grammar_expr));
    *(grammar_expr *)list_add(&parts) = read_sequence(r, nested);
    while (peek(r) == '|') {
        r->p++;
        skip_space(r, true);
        *(grammar_expr *)list_add(&parts) = read_sequence(r, nested);
    }
    if (parts.failed && r->status == OB_OK) r->status = error_memory(r->error, "a grammar", 0);
    grammar_expr out = parts.failed ? grammar_nothing(r->b)
                                    : grammar_alt(r->b, parts.p, parts.n);
    list_free(&parts);
    return out;
}

static void read_rule(struct reader *r) {
    struct str name = read_name(r);
    skip_space(r, false);
    if (r->end - r->p < 3 || memcmp(r->p, "::=", 3) != 0)
        refuse(r, r->p, "\"::=\" is missing after the rule's name");
    if (r->p < r->end) r->p += 3;
    skip_space(r, true);
    grammar_expr body = read_alternates(r, false);
    if (r->p < r->end && *r->p != '\n' && *r->p != '\r')
        refuse(r, r->p, "this belongs to no rule: a newline or the end is missing");
    skip_space(r, true);
    if (r->status == OB_OK) grammar_define(r->b, grammar_rule_named(r->b, name), body);
}

ob_status schema_gbnf(struct str text, const struct sample_vocab *vocab, struct grammar **out,
                      ob_error *error) {
    *out = NULL;
    if (text.n > SCHEMA_TEXT_MOST)
        return error_set(error, OB_ERR_LIMIT, "a grammar has at most %d bytes, not %zu",
                         SCHEMA_TEXT_MOST, text.n);
    if (!text.n) text.p = "";
    struct reader r = {.b = grammar_builder_new(), .vocab = vocab, .start = text.p, .p = text.p,
                       .end = text.p + text.n, .error = error};
    if (!r.b) return error_memory(error, "a grammar", 0);
    skip_space(&r, true);
    while (r.p < r.end && r.status == OB_OK) read_rule(&r);
    grammar_rule root = grammar_rule_named(r.b, STR_LIT("root"));
    if (r.status == OB_OK && !grammar_builder_failed(r.b) && !grammar_rule_defined(r.b, root))
        r.status = error_set(error, OB_ERR_ARGUMENT,
                             "there is no rule \"root\", where texts begin");
    if (r.status == OB_OK) r.status = grammar_finish(r.b, root, out, error);
    grammar_builder_free(&r.b);
    return r.status;
}
