/* SPDX-License-Identifier: Apache-2.0
 * chat_scan.c: see chat_scan.h. */
#include "text/chat_scan.h"

#include "base/utf8.h"

enum { VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, AFTER, STRING, ESCAPE, HEX_1, HEX_2, HEX_3, HEX_4,
       MINUS, ZERO, INTEGER, POINT, FRACTION, E, E_SIGN, EXPONENT, WORD, BAD };

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int bad(struct scan *scan) {
    scan->state = BAD;
    return SCAN_BAD;
}

static bool in_object(const struct scan *scan) {
    unsigned at = scan->depth - 1;
    return scan->depth && scan->object[at / 64] >> (at % 64) & 1;
}

static int push(struct scan *scan, bool object) {
    if (scan->depth == SCAN_DEPTH) return bad(scan);
    uint64_t bit = 1ull << (scan->depth % 64), *word = &scan->object[scan->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    scan->depth++;
    scan->state = object ? FIRST_KEY : FIRST_VALUE;
    return SCAN_BEGINS;
}

static int pop(struct scan *scan, char c) {
    if (!scan->depth || in_object(scan) != (c == '}')) return bad(scan);
    scan->depth--;
    scan->state = AFTER;
    return SCAN_ENDS;
}

static int begin_string(struct scan *scan, bool key) {
    scan->key = key;
    scan->state = STRING;
    return key ? SCAN_BEGINS | SCAN_KEY : SCAN_BEGINS;
}

static int begin_value(struct scan *scan, char c) {
    static const char *const words[] = {"true", "false", "null"};
    if (c == '{' || c == '[') return push(scan, c == '{');
    if (c == '"') return begin_string(scan, false);
    if (c == '-' || is_digit(c)) {
        scan->state = c == '-' ? MINUS : c == '0' ? ZERO : INTEGER;
        return SCAN_BEGINS;
    }
    for (size_t i = 0; i < 3; i++)
        if (c == words[i][0]) {
            scan->state = WORD;
            scan->rest = words[i] + 1;
            return SCAN_BEGINS;
        }
    return bad(scan);
}

static int after(struct scan *scan, char c) {
    if (is_space(c)) return 0;
    if (c == '}' || c == ']') return pop(scan, c);
    if (c != ',' || !scan->depth) return bad(scan);
    scan->state = in_object(scan) ? KEY : VALUE;
    return 0;
}

static int in_string(struct scan *scan, char c) {
    if (scan->state == STRING && c == '\\') scan->state = ESCAPE;
    if (scan->state == STRING && c == '"') {
        scan->state = scan->key ? COLON : AFTER;
        return scan->key ? SCAN_ENDS | SCAN_KEY : SCAN_ENDS;
    }
    return 0;
}

static int in_escape(struct scan *scan, char c) {
    if (scan->state == ESCAPE) {
        if (c == 0 || !strchr("\"\\/bfnrtu", c)) return bad(scan);
        scan->state = c == 'u' ? HEX_1 : STRING;
        return 0;
    }
    if (!is_hex(c)) return bad(scan);
    scan->state = scan->state == HEX_4 ? STRING : scan->state + 1;
    return 0;
}

/* The state behind a digit, a point, a sign or an e; BAD: the number cannot go on so. */
static int next_of_number(int state, char c) {
    bool e = c == 'e' || c == 'E';
    switch (state) {
    case MINUS: return c == '0' ? ZERO : is_digit(c) ? INTEGER : BAD;
    case ZERO: return c == '.' ? POINT : e ? E : BAD;
    case INTEGER: return is_digit(c) ? INTEGER : c == '.' ? POINT : e ? E : BAD;
    case POINT: return is_digit(c) ? FRACTION : BAD;
    case FRACTION: return is_digit(c) ? FRACTION : e ? E : BAD;
    case E: return is_digit(c) ? EXPONENT : c == '+' || c == '-' ? E_SIGN : BAD;
    default: return is_digit(c) ? EXPONENT : BAD;
    }
}

static bool ends_number(int state) {
    return state == ZERO || state == INTEGER || state == FRACTION || state == EXPONENT;
}

static int in_number(struct scan *scan, char c) {
    int next = next_of_number(scan->state, c);
    if (next != BAD) {
        scan->state = next;
        return 0;
    }
    if (!ends_number(scan->state)) return bad(scan);
    scan->state = AFTER;
    return after(scan, c) | SCAN_ENDED;
}

static int in_word(struct scan *scan, char c) {
    if (c != *scan->rest) return bad(scan);
    if (*++scan->rest) return 0;
    scan->state = AFTER;
    return SCAN_ENDS;
}

int scan_byte(struct scan *scan, char c) {
    int state = scan->state;
    if (state == STRING) return in_string(scan, c);
    if (state >= ESCAPE && state <= HEX_4) return in_escape(scan, c);
    if (state >= MINUS && state <= EXPONENT) return in_number(scan, c);
    if (state == WORD) return in_word(scan, c);
    if (state == BAD) return SCAN_BAD;
    if (state == AFTER) return after(scan, c);
    if (is_space(c)) return 0;
    if (state == FIRST_VALUE && c == ']') return pop(scan, c);
    if (state == VALUE || state == FIRST_VALUE) return begin_value(scan, c);
    if (state == FIRST_KEY && c == '}') return pop(scan, c);
    if (state == COLON && c == ':') return scan->state = VALUE, 0;
    if (state != COLON && c == '"') return begin_string(scan, true);
    return bad(scan);
}

bool scan_is_whole(const struct scan *scan) {
    return !scan->depth && (scan->state == AFTER || ends_number(scan->state));
}

bool scan_in_string(const struct scan *scan) { return scan->state == STRING; }

bool scan_is_json(struct str text) {
    struct scan scan = SCAN_INIT;
    for (size_t i = 0; i < text.n; i++) {
        bool control = (unsigned char)text.p[i] < 0x20 && scan_in_string(&scan);
        if (control || scan_byte(&scan, text.p[i]) & SCAN_BAD) return false;
    }
    return scan_is_whole(&scan);
}

/* ---- strings --------------------------------------------------------------------------------- */

void scan_put_string(struct buf *out, struct str text) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *at = c ? strchr(from, c) : NULL;
        if (at) {
            buf_putc(out, '\\');
            buf_putc(out, to[at - from]);
        } else if ((unsigned char)c < 0x20) {
            buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            buf_putc(out, c);
        }
    }
}

static uint32_t hex4(const char *p) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 16 + (uint32_t)(is_digit(p[i]) ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    return value;
}

/* The characters of \uXXXX at `at`, a pair of surrogates together; returns the bytes read. */
static size_t put_hex(struct buf *out, struct str inside, size_t at) {
    char text[4];
    uint32_t code = hex4(inside.p + at + 2), low;
    size_t n = 6;
    bool pair = code >= 0xd800 && code < 0xdc00 && at + 12 <= inside.n &&
                inside.p[at + 6] == '\\' && inside.p[at + 7] == 'u';
    if (pair && (low = hex4(inside.p + at + 8)) >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        n = 12;
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
    buf_add(out, text, utf8_encode(code, text));
    return n;
}

void scan_put_decoded(struct buf *out, struct str inside) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    for (size_t i = 0; i < inside.n;) {
        char c = inside.p[i];
        if (c != '\\' || i + 1 >= inside.n) {
            buf_putc(out, c);
            i++;
        } else if (inside.p[i + 1] == 'u' && i + 6 <= inside.n) {
            i += put_hex(out, inside, i);
        } else {
            const char *at = strchr(from, inside.p[i + 1]);
            buf_putc(out, at && *at ? to[at - from] : inside.p[i + 1]);
            i += 2;
        }
    }
}
