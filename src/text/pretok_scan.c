/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_scan.c: see pretok_scan.h. Each function looks at most one character past what it or the
 * next match takes, but for a run of white space, which is read twice: a text costs linear time. */
#include "text/pretok_scan.h"

size_t scan_run(const char *p, size_t n, size_t at, bool (*in)(struct scan_char), size_t most) {
    for (; most > 0; most--) {
        struct scan_char c = scan_at(p, n, at);
        if (!in(c)) break;
        at += c.n;
    }
    return at;
}

/* The ASCII letter this character is in any case, else 0. U+017F (long s) folds to s; the other
 * character that folds to ASCII, the Kelvin sign, is in no contraction. */
static char folded(struct scan_char c, bool fold) {
    if (!fold) return c.code < 0x80 ? (char)c.code : 0;
    if (c.code == 0x17f) return 's';
    if (c.code >= 'A' && c.code <= 'Z') return (char)(c.code + 32);
    return c.code < 0x80 ? (char)c.code : 0;
}

size_t scan_contraction(const char *p, size_t n, bool fold) {
    if (n < 2 || p[0] != '\'') return 0;
    struct scan_char first = scan_at(p, n, 1);
    char a = folded(first, fold);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1 + first.n;
    struct scan_char second = scan_at(p, n, 1 + first.n);
    char b = second.n ? folded(second, fold) : 0;
    bool pair = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return pair ? 1 + first.n + second.n : 0;
}

size_t scan_spaces(const char *p, size_t n) {
    size_t at = 0, last = 0; /* start of the last character of the run */
    for (;;) {
        struct scan_char c = scan_at(p, n, at);
        if (!scan_space(c)) break;
        last = at;
        at += c.n;
    }
    /* Before a word the run gives its last character back, unless it is the only one. */
    return at == n || last == 0 ? at : last;
}

/* \s*[\r\n]+: up to the last newline of the run of white space. */
static size_t through_newline(const char *p, size_t n) {
    size_t at = 0, end = 0;
    for (;;) {
        struct scan_char c = scan_at(p, n, at);
        if (!scan_space(c)) return end;
        at += c.n;
        if (scan_newline(c)) end = at;
    }
}

size_t scan_gpt4(const char *p, size_t n, size_t digits) {
    size_t contraction = scan_contraction(p, n, true);
    if (contraction) return contraction;
    struct scan_char c = scan_at(p, n, 0), d = scan_at(p, n, c.n);
    if (scan_letter(c)) return scan_run(p, n, c.n, scan_letter, SIZE_MAX);
    if (scan_number(c)) return scan_run(p, n, 0, scan_number, digits);
    if (!scan_newline(c) && scan_letter(d)) return scan_run(p, n, c.n, scan_letter, SIZE_MAX);
    if (scan_other(c) || (c.code == ' ' && scan_other(d))) {
        size_t at = scan_run(p, n, c.n, scan_other, SIZE_MAX);
        return scan_run(p, n, at, scan_newline, SIZE_MAX);
    }
    size_t newline = through_newline(p, n);
    return newline ? newline : scan_spaces(p, n);
}
