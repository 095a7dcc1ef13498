/* SPDX-License-Identifier: Apache-2.0
 * chat_loose.c: see chat_loose.h. A descent that starts again when more text has come: callers try
 * it where a closing bracket has. */
#include "text/chat_loose.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "text/chat_match.h"
#include "text/chat_scan.h"

enum { DEPTH = 100 };

struct reader {
    struct str text, quote;
    size_t at;
    unsigned depth;
    struct buf *out;
};

static enum loose value(struct reader *r);

static bool skip_space(struct reader *r) {
    while (r->at < r->text.n && match_space(r->text.p[r->at])) r->at++;
    return r->at < r->text.n;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int hex_digits(char c) { return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; }

/* The character of \xHH, \uHHHH or \UHHHHHHHH; `at` is behind the letter. */
static bool put_code(struct str text, size_t at, int digits, struct buf *out) {
    char number[9] = "", bytes[4], *end;
    memcpy(number, text.p + at, (size_t)digits);
    unsigned long code = strtoul(number, &end, 16);
    if (end != number + digits || code > 0x10ffff) return false;
    if (code >= 0xd800 && code < 0xe000) return false;
    buf_add(out, bytes, utf8_encode((uint32_t)code, bytes));
    return true;
}

/* An escape as Python reads it: one it does not know stands for itself. */
static enum loose escape(struct reader *r, struct buf *out) {
    static const char from[] = "\\'\"nrtbf\n", to[] = "\\'\"\n\r\t\b\f";
    if (r->at + 1 >= r->text.n) return LOOSE_MORE;
    char c = r->text.p[r->at + 1];
    const char *known = c ? strchr(from, c) : NULL;
    size_t digits = (size_t)hex_digits(c);
    if (digits && r->text.n - r->at < 2 + digits) return LOOSE_MORE;
    if (digits && put_code(r->text, r->at + 2, (int)digits, out)) {
        r->at += 2 + digits;
        return LOOSE_OK;
    }
    if (known && c != '\n') buf_putc(out, to[known - from]);
    else if (!known) buf_putc(out, '\\');
    r->at += known ? 2 : 1;
    return LOOSE_OK;
}

static enum loose quoted(struct reader *r, struct buf *out) {
    char quote = r->text.p[r->at++];
    while (r->at < r->text.n) {
        char c = r->text.p[r->at];
        if (c == quote) return r->at++, LOOSE_OK;
        if (c == '\\') {
            enum loose s = escape(r, out);
            if (s != LOOSE_OK) return s;
        } else {
            buf_putc(out, c);
            r->at++;
        }
    }
    return LOOSE_MORE;
}

/* A string into out, decoded; *is: there was one. */
static enum loose string(struct reader *r, struct buf *out, bool *is) {
    char c = r->text.p[r->at];
    size_t which, start = r->at + r->quote.n;
    *is = c == '"' || c == '\'';
    if (*is) return quoted(r, out);
    enum match mark = r->quote.n ? match_at(r->text, r->at, r->quote) : MATCH_NO;
    if (mark == MATCH_PART) return LOOSE_MORE;
    if (mark == MATCH_NO) return LOOSE_OK;
    *is = true;
    size_t end = match_find(r->text, start, &r->quote, 1, false, &which);
    if (which) return LOOSE_MORE;
    buf_add(out, r->text.p + start, end - start);
    r->at = end + r->quote.n;
    return LOOSE_OK;
}

static void put_quoted(struct buf *out, const struct buf *text) {
    buf_putc(out, '"');
    scan_put_string(out, (struct str){text->p ? text->p : "", text->n});
    buf_putc(out, '"');
}

/* ---- words and numbers ----------------------------------------------------------------------- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

/* A run of such characters, known to end. */
static enum loose word(struct reader *r, struct str *out) {
    size_t start = r->at;
    while (r->at < r->text.n && is_word(r->text.p[r->at])) r->at++;
    *out = (struct str){r->text.p + start, r->at - start};
    return r->at == r->text.n ? LOOSE_MORE : out->n ? LOOSE_OK : LOOSE_BAD;
}

static enum loose scalar(struct reader *r) {
    static const char *const words[][2] = {
        {"True", "true"}, {"true", "true"}, {"False", "false"},
        {"false", "false"}, {"None", "null"}, {"null", "null"}};
    struct str run;
    enum loose s = word(r, &run);
    if (s != LOOSE_OK) return s;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_is(run, words[i][0])) return buf_puts(r->out, words[i][1]), LOOSE_OK;
    if (!scan_is_json(run)) return LOOSE_BAD;
    buf_add(r->out, run.p, run.n);
    return LOOSE_OK;
}

/* ---- containers ------------------------------------------------------------------------------ */

/* "name": in an object, name= in a call; *separator is what stands behind it. */
static enum loose member_name(struct reader *r, char separator) {
    struct buf name = BUF_INIT;
    struct str run;
    bool is;
    enum loose s = string(r, &name, &is);
    if (s == LOOSE_OK && !is && (s = word(r, &run)) == LOOSE_OK) buf_add(&name, run.p, run.n);
    if (s == LOOSE_OK) put_quoted(r->out, &name);
    buf_free(&name);
    if (s != LOOSE_OK) return s;
    if (!skip_space(r)) return LOOSE_MORE;
    if (r->text.p[r->at++] != separator) return LOOSE_BAD;
    buf_puts(r->out, ": ");
    return LOOSE_OK;
}

/* What stands between the brackets, up to `close`; a comma may stand before it. */
static enum loose elements(struct reader *r, char separator, char close) {
    for (size_t n = 0;; n++) {
        if (!skip_space(r)) return LOOSE_MORE;
        if (r->text.p[r->at] == close) return r->at++, LOOSE_OK;
        if (n) buf_puts(r->out, ", ");
        enum loose s = separator ? member_name(r, separator) : LOOSE_OK;
        if (s == LOOSE_OK) s = value(r);
        if (s != LOOSE_OK) return s;
        if (!skip_space(r)) return LOOSE_MORE;
        if (r->text.p[r->at] == ',') r->at++;
        else if (r->text.p[r->at] != close) return LOOSE_BAD;
    }
}

static enum loose container(struct reader *r, char separator, char close, const char *brackets) {
    if (r->depth++ == DEPTH) return LOOSE_BAD;
    buf_putc(r->out, brackets[0]);
    enum loose s = elements(r, separator, close);
    buf_putc(r->out, brackets[1]);
    r->depth--;
    return s;
}

static enum loose value(struct reader *r) {
    struct buf text = BUF_INIT;
    bool is;
    if (!skip_space(r)) return LOOSE_MORE;
    enum loose s = string(r, &text, &is);
    if (s == LOOSE_OK && is) put_quoted(r->out, &text);
    buf_free(&text);
    if (s != LOOSE_OK || is) return s;
    char c = r->text.p[r->at];
    if (c != '{' && c != '[' && c != '(') return scalar(r);
    r->at++;
    return container(r, c == '{' ? ':' : 0, c == '{' ? '}' : c == '[' ? ']' : ')',
                     c == '{' ? "{}" : "[]");
}

enum loose loose_value(struct str text, size_t *at, struct str quote, struct buf *out) {
    struct reader r = {.text = text, .quote = quote, .at = *at, .out = out};
    enum loose s = value(&r);
    if (s == LOOSE_OK) *at = r.at;
    return s;
}

enum loose loose_call(struct str text, size_t *at, struct str *name, struct buf *out) {
    struct reader r = {.text = text, .at = *at, .out = out};
    enum loose s = word(&r, name);
    if (s != LOOSE_OK) return s;
    if (text.p[r.at++] != '(') return LOOSE_BAD;
    s = container(&r, '=', ')', "{}");
    if (s == LOOSE_OK) *at = r.at;
    return s;
}
