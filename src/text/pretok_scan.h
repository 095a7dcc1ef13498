/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_scan.h: what hand scanners of pre-tokenizer expressions share. A match function gives the
 * length of its alternative at the start of the text, 0 if it does not match there. */
#ifndef TEXT_PRETOK_SCAN_H
#define TEXT_PRETOK_SCAN_H

#include "base/str.h"
#include "base/utf8.h"
#include "text/unicode.h"

/* A character of the text: its bytes, code and properties; n = 0 past the end. */
struct scan_char {
    size_t n;
    uint32_t code;
    uint8_t of;
};

static inline struct scan_char scan_at(const char *p, size_t n, size_t at) {
    if (at >= n) return (struct scan_char){0, UTF8_BAD, 0};
    unsigned char c = (unsigned char)p[at];
    if (c < 0x80) return (struct scan_char){1, c, unicode_of(c)};
    struct scan_char s;
    s.n = utf8_decode(p + at, n - at, &s.code);
    s.of = unicode_of(s.code);
    return s;
}

static inline bool scan_letter(struct scan_char c) { return c.n && unicode_is_letter(c.of); }
static inline bool scan_number(struct scan_char c) { return c.n && unicode_is_number(c.of); }
static inline bool scan_space(struct scan_char c) { return c.n && unicode_is_space(c.of); }
static inline bool scan_newline(struct scan_char c) {
    return c.n && (c.code == '\r' || c.code == '\n');
}
/* [^\s\p{L}\p{N}] */
static inline bool scan_other(struct scan_char c) {
    return c.n && !unicode_is_letter(c.of) && !unicode_is_number(c.of) && !unicode_is_space(c.of);
}

/* End of the run of characters of a class that starts at `at`, at most `most` of them. */
size_t scan_run(const char *p, size_t n, size_t at, bool (*in)(struct scan_char), size_t most);

/* 's|'t|'re|'ve|'m|'ll|'d, in any case if `fold`. */
size_t scan_contraction(const char *p, size_t n, bool fold);
/* \s+(?!\S)|\s+ */
size_t scan_spaces(const char *p, size_t n);
/* The expression of GPT-4 and its heirs, with \p{N}{1,digits}:
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+ */
size_t scan_gpt4(const char *p, size_t n, size_t digits);

#endif
