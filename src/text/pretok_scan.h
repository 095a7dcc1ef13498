/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_scan.h: what hand scanners of pre-tokenizer expressions share. A match function gives the
 * length of its alternative at the start of the text, 0 if it does not match there. */
#ifndef TEXT_PRETOK_SCAN_H
#define TEXT_PRETOK_SCAN_H

#include "base/str.h"
#include "base/utf8.h"
#include "text/unicode.h"

enum scan_class { /* of a character, as a mask; none: controls, unassigned, malformed */
    SCAN_LETTER = 1, /* \p{L} */
    SCAN_MARK = 2,   /* \p{M} */
    SCAN_NUMBER = 4, /* \p{N} */
    SCAN_SPACE = 8,  /* \s */
    SCAN_PUNCT = 16, /* \p{P} */
    SCAN_SYMBOL = 32, /* \p{S} */
    SCAN_UPPER = 64, /* not \p{Ll}, of the letters: Lu Lt Lm Lo; and marks */
    SCAN_LOWER = 128, /* Ll Lm Lo; and marks */
};

/* A character of the text: its bytes, code and classes; n = 0 past the end. */
struct scan_char {
    size_t n;
    uint32_t code;
    uint8_t of; /* unicode_of */
    uint8_t in; /* enum scan_class */
};

extern const uint8_t scan_ascii[128];           /* classes */
extern const uint8_t scan_category[32];         /* of each category */

static inline struct scan_char scan_at(const char *p, size_t n, size_t at) {
    if (at >= n) return (struct scan_char){0, UTF8_BAD, 0, 0};
    unsigned char c = (unsigned char)p[at];
    if (c < 0x80) return (struct scan_char){1, c, 0, scan_ascii[c]};
    struct scan_char s;
    s.n = utf8_decode(p + at, n - at, &s.code);
    s.of = unicode_of(s.code);
    s.in = (uint8_t)(scan_category[s.of & UNICODE_CATEGORY] |
                     (unicode_is_space(s.of) ? SCAN_SPACE : 0));
    return s;
}

static inline bool scan_in(struct scan_char c, unsigned classes) { return (c.in & classes) != 0; }
static inline bool scan_newline(struct scan_char c) { return c.code == '\r' || c.code == '\n'; }
/* [^...] of classes */
static inline bool scan_not(struct scan_char c, unsigned classes) {
    return c.n && (c.in & classes) == 0;
}
/* \w */
bool scan_word(struct scan_char c);

/* End of the run of characters of some classes (of none of them) that starts at `at`, at most
 * `most` of them. */
static inline size_t scan_run(const char *p, size_t n, size_t at, unsigned classes, size_t most) {
    for (struct scan_char c; most > 0 && scan_in(c = scan_at(p, n, at), classes); most--) at += c.n;
    return at;
}
static inline size_t scan_run_not(const char *p, size_t n, size_t at, unsigned classes) {
    for (struct scan_char c; scan_not(c = scan_at(p, n, at), classes);) at += c.n;
    return at;
}

/* 's|'t|'re|'ve|'m|'ll|'d, in any case if `fold`, at p[at..n). */
size_t scan_contraction(const char *p, size_t n, bool fold);
/* \s+(?!\S)|\s+ */
size_t scan_spaces(const char *p, size_t n);
/* \s*[\r\n]+|\s+(?!\S)|\s+ */
size_t scan_blank(const char *p, size_t n);
/* The expression of GPT-4 and its heirs, with \p{N}{1,digits} and `marks` (SCAN_MARK or 0) among
 * the letters: (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
size_t scan_gpt4(const char *p, size_t n, size_t digits, unsigned marks);

#endif
