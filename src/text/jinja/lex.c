/* SPDX-License-Identifier: Apache-2.0
 *
 * lex.c: see lex.h. The lexer is in one of three states: root (text up to the next tag), block
 * ({% ... %}) and variable ({{ ... }}); comments and raw blocks are consumed whole from root.
 * A closing tag counts only while no bracket is open, so that {{ {'a': {}} }} works. */
#include "text/jinja/lex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/jinja/char.h"

static bool fail(const struct lexer *lx, ob_error *error, const char *message) {
    char where[32];
    snprintf(where, sizeof where, "line %u", lx->line);
    error_set(error, OB_ERR_FORMAT, "%s", message);
    error_at(error, NULL, where, OB_NO_OFFSET);
    return false;
}

bool lex_init(struct lexer *lx, struct arena *arena, const char *source, size_t n,
              ob_error *error) {
    *lx = (struct lexer){.arena = arena, .line = 1, .line_starting = true};
    char *p = arena_alloc(arena, n + 1);
    if (!p) {
        error_memory(error, "the template", n);
        return false;
    }
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t length = utf8_decode(source + i, n - i, &c);
        if (c == UTF8_BAD) {
            error_set(error, OB_ERR_FORMAT, "the template is not UTF-8");
            error_at(error, NULL, NULL, i);
            return false;
        }
        if (c == '\r') {
            p[out++] = '\n';
            if (i + 1 < n && source[i + 1] == '\n') i++;
        } else {
            memcpy(p + out, source + i, length);
            out += length;
        }
        i += length;
    }
    if (out && p[out - 1] == '\n') out--; /* keep_trailing_newline is off */
    lx->start = lx->p = p;
    lx->end = p + out;
    return true;
}

/* ---- consuming ---- */

static void advance(struct lexer *lx, const char *to) {
    for (const char *p = lx->p; p < to; p++) lx->line += *p == '\n';
    if (to > lx->p) lx->line_starting = to[-1] == '\n';
    lx->p = to;
}

static const char *skip_space(const struct lexer *lx, const char *p) {
    for (size_t n; (n = char_space_at(p, lx->end)) != 0;) p += n;
    return p;
}

static bool looking_at(const struct lexer *lx, const char *p, const char *what) {
    size_t n = strlen(what);
    return (size_t)(lx->end - p) >= n && memcmp(p, what, n) == 0;
}

/* After a tag's closing characters: what trim_blocks or a '-' takes away. */
static const char *after_tag(const struct lexer *lx, const char *p, char sign) {
    if (sign == '-') return skip_space(lx, p);
    if (sign != '+' && p < lx->end && *p == '\n') p++;
    return p;
}

/* The end of a tag that closes with "}}" or "%}" at p, with its sign; NULL if none is here. */
static const char *close_at(const struct lexer *lx, const char *p, const char *closer, bool plus,
                            char *sign) {
    *sign = 0;
    if (p < lx->end && (*p == '-' || (plus && *p == '+'))) *sign = *p++;
    return looking_at(lx, p, closer) ? p + 2 : NULL;
}

/* Text in front of a tag, less the white space that the tag's sign or lstrip_blocks removes. */
static struct str before_tag(const struct lexer *lx, const char *tag, char sign, bool variable) {
    const char *from = lx->p, *to = tag;
    if (sign == '-') {
        for (size_t n; (n = char_space_before(from, to)) != 0;) to -= n;
    } else if (sign != '+' && !variable) {
        const char *line = to;
        while (line > from && line[-1] != '\n') line--;
        if ((line > from || lx->line_starting) && skip_space(lx, line) >= to) to = line;
    }
    return (struct str){from, (size_t)(to - from)};
}

/* ---- root ---- */

static bool comment(struct lexer *lx, ob_error *error) {
    const char *from = lx->p;
    for (const char *p = from; p + 1 < lx->end; p++) {
        if (p[0] != '#' || p[1] != '}') continue;
        char sign = p > from && (p[-1] == '-' || p[-1] == '+') ? p[-1] : 0;
        advance(lx, after_tag(lx, p + 2, sign));
        return true;
    }
    return fail(lx, error, "missing end of comment");
}

/* The end of "raw %}" after the opening of a block at p, NULL if this is another block. */
static const char *raw_begin(const struct lexer *lx, const char *p) {
    p = skip_space(lx, p);
    if (!looking_at(lx, p, "raw")) return NULL;
    p = skip_space(lx, p + 3);
    char sign;
    const char *end = close_at(lx, p, "%}", false, &sign);
    if (!end) return NULL;
    return sign == '-' ? skip_space(lx, end) : end;
}

static bool raw(struct lexer *lx, struct token *out, ob_error *error) {
    for (const char *p = lx->p; p + 1 < lx->end; p++) {
        if (p[0] != '{' || p[1] != '%') continue;
        const char *q = p + 2;
        char sign = q < lx->end && (*q == '-' || *q == '+') ? *q++ : 0;
        q = skip_space(lx, q);
        if (!looking_at(lx, q, "endraw")) continue;
        char end_sign;
        q = close_at(lx, skip_space(lx, q + 6), "%}", true, &end_sign);
        if (!q) continue;
        *out = (struct token){.kind = TOKEN_DATA, .line = lx->line,
                              .text = before_tag(lx, p, sign, false)};
        advance(lx, after_tag(lx, q, end_sign));
        return true;
    }
    return fail(lx, error, "missing end of raw block");
}

static bool root(struct lexer *lx, struct token *out, ob_error *error) {
    for (;;) {
        const char *tag = lx->p;
        while (tag + 1 < lx->end && !(tag[0] == '{' && strchr("{%#", tag[1]) && tag[1])) tag++;
        *out = (struct token){.line = lx->line};
        if (tag + 1 >= lx->end) {
            out->kind = lx->p < lx->end ? TOKEN_DATA : TOKEN_EOF;
            out->text = (struct str){lx->p, (size_t)(lx->end - lx->p)};
            advance(lx, lx->end);
            return true;
        }
        char kind = tag[1];
        const char *in = tag + 2;
        char sign = in < lx->end && (*in == '-' || *in == '+') ? *in++ : 0;
        struct str text = before_tag(lx, tag, sign, kind == '{');
        const char *raw_body = kind == '%' ? raw_begin(lx, in) : NULL;
        if (text.n) { /* give the text first and come back for the tag */
            out->kind = TOKEN_DATA;
            out->text = text;
            /* a tag seen again has no text before it; its line_starting no longer matters */
            advance(lx, tag);
            return true;
        }
        advance(lx, raw_body ? raw_body : in);
        out->line = lx->line;
        if (raw_body) return raw(lx, out, error);
        if (kind == '#') {
            if (!comment(lx, error)) return false;
            continue;
        }
        lx->state = kind == '%' ? LEX_BLOCK : LEX_VARIABLE;
        out->kind = kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_VARIABLE_BEGIN;
        return true;
    }
}

/* ---- inside a tag ---- */

static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int hex_digit(char c) {
    if (digit(c)) return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Digits of `base` with single underscores between them; the end. */
static const char *digits(const struct lexer *lx, const char *p, int base) {
    for (bool first = true;; first = false) {
        const char *q = p;
        if (!first && q < lx->end && *q == '_') q++;
        if (q >= lx->end) return p;
        int v = hex_digit(*q);
        if (v < 0 || v >= base) return p;
        p = q + 1;
    }
}

static const char *float_end(const struct lexer *lx, const char *p, const char *int_end) {
    const char *q = int_end;
    if (p > lx->start && p[-1] == '.') return NULL; /* a.1.2 is two subscripts */
    if (q + 1 < lx->end && *q == '.' && digit(q[1])) q = digits(lx, q + 1, 10);
    const char *e = q;
    if (e < lx->end && (*e | 32) == 'e') {
        e++;
        if (e < lx->end && (*e == '+' || *e == '-')) e++;
        if (e < lx->end && digit(*e)) q = digits(lx, e, 10);
    }
    return q > int_end ? q : NULL;
}

static bool number(struct lexer *lx, struct token *out, ob_error *error) {
    const char *p = lx->p, *end = digits(lx, p, 10);
    const char *real = float_end(lx, p, end);
    int base = 10;
    if (!real && *p == '0' && p + 2 < lx->end) {
        char c = (char)(p[1] | 32);
        int b = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        const char *from = p + 2 + (p[2] == '_');
        if (b && digits(lx, from, b) > from) {
            base = b;
            end = digits(lx, from, b);
            p += 2;
        }
    }
    if (!real && base == 10 && *p == '0') { /* 0, 00; a leading zero ends the number */
        end = p;
        while (end < lx->end && *end == '0') end++;
    }
    char text[400];
    size_t n = 0;
    for (const char *q = p; q < (real ? real : end) && n < sizeof text - 1; q++)
        if (*q != '_') text[n++] = *q;
    text[n] = 0;
    if (n == sizeof text - 1) return fail(lx, error, "number too long");
    out->kind = real ? TOKEN_FLOAT : TOKEN_INTEGER;
    out->text = (struct str){p, (size_t)((real ? real : end) - p)};
    if (real) {
        out->f = strtod(text, NULL);
    } else {
        uint64_t v = 0;
        out->base = (unsigned)base;
        for (size_t i = 0; i < n; i++) {
            uint64_t d = (uint64_t)hex_digit(text[i]);
            if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, d, &v) ||
                v > INT64_MAX)
                out->kind = TOKEN_BIG;
        }
        out->i = (int64_t)v;
        if (out->kind == TOKEN_BIG && !(out->text.p = arena_copy(lx->arena, text, n)))
            return fail(lx, error, "out of memory");
        if (out->kind == TOKEN_BIG) out->text.n = n;
    }
    advance(lx, real ? real : end);
    return true;
}

/* \xHH, \uHHHH, \UHHHHHHHH: the code point of `n` hexadecimal digits at p. */
static bool hex(const char *p, const char *end, size_t n, uint32_t *code) {
    *code = 0;
    if ((size_t)(end - p) < n) return false;
    for (size_t i = 0; i < n; i++) {
        int v = hex_digit(p[i]);
        if (v < 0) return false;
        *code = *code << 4 | (uint32_t)v;
    }
    return true;
}

/* One escape at p, after the backslash, written to w. Returns what follows; NULL: malformed. */
static const char *escape(const char *p, const char *end, char **w) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    uint32_t code = 0;
    size_t n = 0;
    const char *simple = *p ? strchr(from, *p) : NULL;
    if (simple) {
        *(*w)++ = to[simple - from];
        return p + 1;
    }
    if (*p == '\n') return p + 1;
    if (*p >= '0' && *p <= '7') {
        for (; n < 3 && p < end && *p >= '0' && *p <= '7'; n++)
            code = code * 8 + (uint32_t)(*p++ - '0');
        n = 0;
    } else if (*p == 'x' || *p == 'u' || *p == 'U') {
        n = *p == 'x' ? 2 : *p == 'u' ? 4 : 8;
        p++;
        if (!hex(p, end, n, &code)) return NULL;
    } else if (*p == 'N') {
        return NULL;
    } else { /* an unknown escape stays as it is */
        *(*w)++ = '\\';
        return p;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return NULL;
    char bytes[4];
    size_t length = utf8_encode(code, bytes);
    memcpy(*w, bytes, length);
    *w += length;
    return p + n;
}

static bool string(struct lexer *lx, struct token *out, ob_error *error) {
    char quote = *lx->p;
    const char *end = lx->p + 1;
    while (end < lx->end && *end != quote) end += *end == '\\' ? 2 : 1;
    if (end >= lx->end) return fail(lx, error, "unterminated string");
    /* no escape is shorter than the bytes it stands for */
    char *text = arena_alloc(lx->arena, (size_t)(end - lx->p)), *w = text;
    if (!text) return fail(lx, error, "out of memory");
    for (const char *p = lx->p + 1; p < end;) {
        if (*p != '\\') {
            *w++ = *p++;
            continue;
        }
        p = escape(p + 1, end, &w);
        if (!p) return fail(lx, error, "malformed escape in a string");
    }
    out->kind = TOKEN_STRING;
    out->text = (struct str){text, (size_t)(w - text)};
    advance(lx, end + 1);
    return true;
}

static const struct {
    char text[3];
    enum token_kind kind;
} operators[] = {
    /* longest first */
    {"//", TOKEN_FLOORDIV}, {"**", TOKEN_POW}, {"==", TOKEN_EQ}, {"!=", TOKEN_NE},
    {"<=", TOKEN_LE}, {">=", TOKEN_GE}, {"+", TOKEN_ADD}, {"-", TOKEN_SUB}, {"*", TOKEN_MUL},
    {"/", TOKEN_DIV}, {"%", TOKEN_MOD}, {"~", TOKEN_TILDE}, {"<", TOKEN_LT}, {">", TOKEN_GT},
    {"=", TOKEN_ASSIGN}, {"(", TOKEN_LPAREN}, {")", TOKEN_RPAREN}, {"[", TOKEN_LBRACKET},
    {"]", TOKEN_RBRACKET}, {"{", TOKEN_LBRACE}, {"}", TOKEN_RBRACE}, {".", TOKEN_DOT},
    {":", TOKEN_COLON}, {"|", TOKEN_PIPE}, {",", TOKEN_COMMA}, {";", TOKEN_SEMICOLON},
};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

static bool operator(struct lexer *lx, struct token *out, ob_error *error) {
    size_t i = 0;
    while (i < OPERATORS && !looking_at(lx, lx->p, operators[i].text)) i++;
    if (i == OPERATORS) {
        char message[64];
        unsigned char c = (unsigned char)*lx->p;
        snprintf(message, sizeof message, c > 0x20 && c < 0x7f ? "unexpected character '%c'"
                 : "unexpected byte 0x%02x", c);
        return fail(lx, error, message);
    }
    char c = operators[i].text[0];
    if (c == '(' || c == '[' || c == '{') {
        if (lx->open == LEX_NESTING) return fail(lx, error, "brackets nested too deeply");
        lx->closer[lx->open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        char message[40];
        snprintf(message, sizeof message, "unexpected '%c'", c);
        if (!lx->open || lx->closer[--lx->open] != c) return fail(lx, error, message);
    }
    out->kind = operators[i].kind;
    out->text = str_of(operators[i].text);
    advance(lx, lx->p + out->text.n);
    return true;
}

bool lex_next(struct lexer *lx, struct token *out, ob_error *error) {
    if (lx->state == LEX_ROOT) return root(lx, out, error);
    char sign;
    bool block = lx->state == LEX_BLOCK;
    for (;; advance(lx, skip_space(lx, lx->p))) {
        *out = (struct token){.line = lx->line};
        const char *end = lx->open ? NULL : close_at(lx, lx->p, block ? "%}" : "}}", block, &sign);
        if (end) {
            out->kind = block ? TOKEN_BLOCK_END : TOKEN_VARIABLE_END;
            lx->state = LEX_ROOT;
            advance(lx, block ? after_tag(lx, end, sign) : sign == '-' ? skip_space(lx, end) : end);
            return true;
        }
        if (!char_space_at(lx->p, lx->end)) break;
    }
    if (lx->p >= lx->end) return true; /* TOKEN_EOF: the parser knows what it misses */
    char c = *lx->p;
    if (digit(c)) return number(lx, out, error);
    if (c == '\'' || c == '"') return string(lx, out, error);
    if (!letter(c)) return operator(lx, out, error);
    const char *name_end = lx->p;
    while (name_end < lx->end && (letter(*name_end) || digit(*name_end))) name_end++;
    out->kind = TOKEN_NAME;
    out->text = (struct str){lx->p, (size_t)(name_end - lx->p)};
    advance(lx, name_end);
    return true;
}

const char *lex_describe(const struct token *t, char *out, size_t size) {
    static const char *const tags[] = {
        [TOKEN_EOF] = "end of template", [TOKEN_DATA] = "text",
        [TOKEN_BLOCK_BEGIN] = "'{%'", [TOKEN_BLOCK_END] = "'%}'",
        [TOKEN_VARIABLE_BEGIN] = "'{{'", [TOKEN_VARIABLE_END] = "'}}'"};
    if (t->kind <= TOKEN_VARIABLE_END) return tags[t->kind];
    snprintf(out, size, "'%.*s'", STR_ARG(t->text));
    return out;
}
