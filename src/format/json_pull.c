/* SPDX-License-Identifier: Apache-2.0
 *
 * json_pull.c: see json_pull.h. A state says what may come next and a stack of '[' and '{' what is
 * open, so nothing recurses. Strings without escapes are given as they stand in the text. */
#define _GNU_SOURCE
#include "format/json_pull.h"

#include <locale.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"

enum state {
    VALUE,        /* a value must come: at the start, after ':', after ',' in an array */
    FIRST_VALUE,  /* or ] */
    KEY,          /* after ',' in an object */
    FIRST_KEY,    /* or } */
    AFTER_VALUE,  /* , or the end of what is open */
    DONE,
    BROKEN,
};

static const char out_of_memory[] = "out of memory";

void pull_open(struct json_pull *j, const char *text, size_t n) {
    *j = (struct json_pull){.p = text, .start = text, .end = text + n};
}

void pull_close(struct json_pull *j) { buf_free(&j->scratch); }

size_t pull_offset(const struct json_pull *j) { return (size_t)(j->p - j->start); }

ob_status pull_error(const struct json_pull *j, ob_error *error) {
    if (j->message == out_of_memory) return error_memory(error, "a JSON string", j->scratch.n);
    error_set(error, OB_ERR_FORMAT, "malformed JSON: %s",
              j->message ? j->message : "unexpected content");
    error_at(error, NULL, NULL, pull_offset(j));
    return OB_ERR_FORMAT;
}

static enum pull_kind bad(struct json_pull *j, const char *message) {
    j->message = message;
    j->state = BROKEN;
    j->text = (struct str){0};
    return j->kind = PULL_BAD;
}

static void skip_space(struct json_pull *j) {
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
        j->p++;
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool read_hex4(struct json_pull *j, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, j->p++) {
        if (j->p == j->end) return false;
        char c = *j->p;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return false;
        *out = *out << 4 | digit;
    }
    return true;
}

/* After "\u": one code point, two escapes when it is a surrogate pair. */
static const char *read_unicode(struct json_pull *j) {
    uint32_t code, low;
    char utf8[4];
    if (!read_hex4(j, &code)) return "\\u needs four hexadecimal digits";
    if (code >= 0xdc00 && code <= 0xdfff) return "a surrogate without its pair";
    if (code >= 0xd800 && code <= 0xdbff) {
        if (j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u')
            return "a surrogate without its pair";
        j->p += 2;
        if (!read_hex4(j, &low)) return "\\u needs four hexadecimal digits";
        if (low < 0xdc00 || low > 0xdfff) return "a surrogate without its pair";
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    buf_add(&j->scratch, utf8, utf8_encode(code, utf8));
    return NULL;
}

/* At the character after a backslash. */
static const char *read_escape(struct json_pull *j) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->p == j->end) return "the text ends inside a string";
    char c = *j->p++;
    if (c == 'u') return read_unicode(j);
    const char *at = c ? strchr(from, c) : NULL;
    if (!at) return j->p--, "unknown escape";
    buf_putc(&j->scratch, to[at - from]);
    return NULL;
}

/* After the opening quote; leaves j->text and stands behind the closing one. NULL: good. */
static const char *read_string(struct json_pull *j) {
    const char *run = j->p; /* what is not yet in scratch */
    bool escaped = false;
    while (j->p < j->end) {
        unsigned char c = (unsigned char)*j->p;
        if (c == '"') {
            j->text = (struct str){run, (size_t)(j->p++ - run)};
            if (!escaped) return NULL;
            buf_add(&j->scratch, j->text.p, j->text.n);
            j->text = (struct str){j->scratch.p, j->scratch.n};
            return j->scratch.failed ? out_of_memory : NULL;
        }
        if (c < 0x20) return "a control character in a string";
        if (c == '\\') {
            if (!escaped) buf_clear(&j->scratch);
            escaped = true;
            buf_add(&j->scratch, run, (size_t)(j->p++ - run));
            const char *message = read_escape(j);
            if (message) return message;
            run = j->p;
        } else if (c < 0x80) {
            j->p++;
        } else {
            uint32_t code;
            size_t n = utf8_decode(j->p, (size_t)(j->end - j->p), &code);
            if (code == UTF8_BAD) return "not UTF-8";
            j->p += n;
        }
    }
    return "the text ends inside a string";
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t skip_digits(struct json_pull *j) {
    const char *from = j->p;
    while (j->p < j->end && *j->p >= '0' && *j->p <= '9') j->p++;
    return (size_t)(j->p - from);
}

static bool skip_one_of(struct json_pull *j, const char *set) {
    if (j->p == j->end || *j->p == 0 || !strchr(set, *j->p)) return false;
    j->p++;
    return true;
}

/* The text goes to scratch, where it is terminated for strtod. */
static const char *read_number(struct json_pull *j) {
    const char *from = j->p;
    skip_one_of(j, "-");
    if (!skip_one_of(j, "0") && skip_digits(j) == 0) return "a number without digits";
    if (skip_one_of(j, ".") && skip_digits(j) == 0)
        return "a number without digits after its point";
    if (skip_one_of(j, "eE")) {
        skip_one_of(j, "+-");
        if (skip_digits(j) == 0) return "a number without digits in its exponent";
    }
    buf_clear(&j->scratch);
    buf_add(&j->scratch, from, (size_t)(j->p - from));
    j->text = (struct str){j->scratch.p, j->scratch.n};
    return j->scratch.failed ? out_of_memory : NULL;
}

double pull_number(const struct json_pull *j) {
    /* The caller's program may have set a locale with a decimal comma. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return strtod(j->text.p, NULL);
    double out = strtod_l(j->text.p, NULL, c);
    freelocale(c);
    return out;
}

bool pull_u64(const struct json_pull *j, uint64_t *out) {
    if (j->kind != PULL_NUMBER) return false;
    uint64_t n = 0;
    for (size_t i = 0; i < j->text.n; i++) {
        char c = j->text.p[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(c - '0'), &n))
            return false;
    }
    *out = n;
    return true;
}

bool pull_i64(const struct json_pull *j, int64_t *out) {
    struct json_pull magnitude = *j;
    bool negative = j->kind == PULL_NUMBER && j->text.p[0] == '-';
    uint64_t n;
    if (negative) magnitude.text = (struct str){j->text.p + 1, j->text.n - 1};
    if (!pull_u64(&magnitude, &n) || n > (uint64_t)INT64_MAX + negative) return false;
    *out = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static enum pull_kind finish_value(struct json_pull *j, enum pull_kind kind) {
    j->state = j->depth ? AFTER_VALUE : DONE;
    return j->kind = kind;
}

static enum pull_kind open_nest(struct json_pull *j, char c) {
    if (j->depth == PULL_DEPTH) return bad(j, "nested too deeply");
    j->stack[j->depth++] = c;
    j->p++;
    j->state = c == '[' ? FIRST_VALUE : FIRST_KEY;
    return j->kind = c == '[' ? PULL_ARRAY : PULL_OBJECT;
}

static enum pull_kind close_nest(struct json_pull *j) {
    char c = j->stack[--j->depth];
    j->p++;
    return finish_value(j, c == '[' ? PULL_ARRAY_END : PULL_OBJECT_END);
}

static bool skip_word(struct json_pull *j, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0) return false;
    j->p += n;
    return true;
}

static enum pull_kind read_value(struct json_pull *j) {
    char c = *j->p;
    const char *message;
    if (c == '[' || c == '{') return open_nest(j, c);
    if (c == '"') {
        j->p++;
        message = read_string(j);
        return message ? bad(j, message) : finish_value(j, PULL_STRING);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        message = read_number(j);
        return message ? bad(j, message) : finish_value(j, PULL_NUMBER);
    }
    if (skip_word(j, "null")) return finish_value(j, PULL_NULL);
    j->truth = c == 't';
    if (skip_word(j, j->truth ? "true" : "false")) return finish_value(j, PULL_BOOL);
    return bad(j, "a value is expected");
}

static enum pull_kind read_key(struct json_pull *j) {
    if (*j->p != '"') return bad(j, "a key is expected");
    j->p++;
    const char *message = read_string(j);
    if (message) return bad(j, message);
    skip_space(j);
    if (j->p == j->end || *j->p != ':') return bad(j, "a colon is expected");
    j->p++;
    j->state = VALUE;
    return j->kind = PULL_KEY;
}

enum pull_kind pull_next(struct json_pull *j) {
    if (j->state == BROKEN) return PULL_BAD;
    j->text = (struct str){0};
    skip_space(j);
    if (j->state == DONE)
        return j->p == j->end ? (j->kind = PULL_END) : bad(j, "more after the end");
    if (j->p == j->end) return bad(j, "the text ends too early");
    char open = j->depth ? j->stack[j->depth - 1] : 0;
    if (j->state == AFTER_VALUE) {
        if (*j->p == (open == '[' ? ']' : '}')) return close_nest(j);
        if (*j->p != ',')
            return bad(j, open == '[' ? "a comma or ] is expected" : "a comma or } is expected");
        j->p++;
        j->state = open == '[' ? VALUE : KEY;
        skip_space(j);
        if (j->p == j->end) return bad(j, "the text ends too early");
    }
    if (j->state == FIRST_VALUE && *j->p == ']') return close_nest(j);
    if (j->state == FIRST_KEY && *j->p == '}') return close_nest(j);
    return j->state == KEY || j->state == FIRST_KEY ? read_key(j) : read_value(j);
}

bool pull_skip(struct json_pull *j) {
    unsigned depth = j->depth;
    do {
        enum pull_kind kind = pull_next(j);
        if (kind == PULL_BAD || kind == PULL_END || j->depth < depth) return false;
    } while (j->depth > depth || j->kind == PULL_KEY);
    return true;
}
