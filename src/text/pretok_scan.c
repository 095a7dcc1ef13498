/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_scan.c: see pretok_scan.h. Each function looks at most one character past what it or the
 * next match takes, but for a run of white space, which is read twice: a text costs linear time. */
#include "text/pretok_scan.h"

const uint8_t scan_ascii[128] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    8, 16, 16, 16, 32, 16, 16, 16, 16, 16, 16, 32, 16, 16, 16, 16,
    4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 16, 16, 32, 32, 32, 16,
    16, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
    65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 16, 16, 16, 32, 16,
    32, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129,
    129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 129, 16, 32, 16, 32, 0,
};

#define EITHER (SCAN_UPPER | SCAN_LOWER) /* has no case */
const uint8_t scan_category[32] = {
    [UNICODE_LU] = SCAN_LETTER | SCAN_UPPER, [UNICODE_LL] = SCAN_LETTER | SCAN_LOWER,
    [UNICODE_LT] = SCAN_LETTER | SCAN_UPPER, [UNICODE_LM] = SCAN_LETTER | EITHER,
    [UNICODE_LO] = SCAN_LETTER | EITHER,     [UNICODE_MN] = SCAN_MARK | EITHER,
    [UNICODE_MC] = SCAN_MARK | EITHER,       [UNICODE_ME] = SCAN_MARK | EITHER,
    [UNICODE_ND] = SCAN_NUMBER,              [UNICODE_NL] = SCAN_NUMBER,
    [UNICODE_NO] = SCAN_NUMBER,              [UNICODE_PC] = SCAN_PUNCT,
    [UNICODE_PD] = SCAN_PUNCT,               [UNICODE_PS] = SCAN_PUNCT,
    [UNICODE_PE] = SCAN_PUNCT,               [UNICODE_PI] = SCAN_PUNCT,
    [UNICODE_PF] = SCAN_PUNCT,               [UNICODE_PO] = SCAN_PUNCT,
    [UNICODE_SM] = SCAN_SYMBOL,              [UNICODE_SC] = SCAN_SYMBOL,
    [UNICODE_SK] = SCAN_SYMBOL,              [UNICODE_SO] = SCAN_SYMBOL,
};

/* Oniguruma's \w has the superscript digits and fractions of Latin-1 too. */
bool scan_word(struct scan_char c) {
    bool odd = c.code == 0xb2 || c.code == 0xb3 || c.code == 0xb9 ||
               (c.code >= 0xbc && c.code <= 0xbe);
    return c.n && (odd || unicode_is_word(c.code));
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
    for (struct scan_char c; scan_in(c = scan_at(p, n, at), SCAN_SPACE); at += c.n) last = at;
    /* Before a word the run gives its last character back, unless it is the only one. */
    return at == n || last == 0 ? at : last;
}

size_t scan_blank(const char *p, size_t n) {
    size_t at = 0, last = 0, end = 0; /* end: after the last newline */
    for (struct scan_char c; scan_in(c = scan_at(p, n, at), SCAN_SPACE);) {
        last = at;
        at += c.n;
        if (scan_newline(c)) end = at;
    }
    if (end) return end;
    return at == n || last == 0 ? at : last;
}

size_t scan_gpt4(const char *p, size_t n, size_t digits, unsigned marks) {
    const unsigned letter = SCAN_LETTER | marks, known = letter | SCAN_NUMBER | SCAN_SPACE;
    size_t contraction = scan_contraction(p, n, true);
    if (contraction) return contraction;
    struct scan_char c = scan_at(p, n, 0);
    if (scan_in(c, letter)) return scan_run(p, n, c.n, letter, SIZE_MAX);
    if (scan_in(c, SCAN_NUMBER)) return scan_run(p, n, 0, SCAN_NUMBER, digits);
    struct scan_char d = scan_at(p, n, c.n);
    if (scan_in(d, letter) && !scan_newline(c))
        return scan_run(p, n, c.n + d.n, letter, SIZE_MAX);
    if (scan_not(c, known) || (c.code == ' ' && scan_not(d, known))) {
        size_t at = scan_run_not(p, n, c.n, known);
        while (at < n && (p[at] == '\r' || p[at] == '\n')) at++;
        return at;
    }
    return scan_blank(p, n);
}
