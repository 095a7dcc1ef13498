/* SPDX-License-Identifier: Apache-2.0
 * pretok_gpt2.c: GPT-2's expression, also that of ByteLevel with use_regex in tokenizer.json. */
#include "text/pretok.h"
#include "text/pretok_scan.h"

static size_t next(const char *p, size_t n) {
    size_t contraction = scan_contraction(p, n, false);
    if (contraction) return contraction;
    struct scan_char c = scan_at(p, n, 0);
    size_t at = c.n;
    struct scan_char d = c.code == ' ' ? scan_at(p, n, at) : c; /* after the optional space */
    const unsigned known = SCAN_LETTER | SCAN_NUMBER | SCAN_SPACE;
    if (scan_in(d, SCAN_LETTER)) return scan_run(p, n, at, SCAN_LETTER, SIZE_MAX);
    if (scan_in(d, SCAN_NUMBER)) return scan_run(p, n, at, SCAN_NUMBER, SIZE_MAX);
    if (scan_not(d, known)) return scan_run_not(p, n, at, known);
    return scan_spaces(p, n);
}

const struct rule rule_gpt2 = {
    .regex = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    .next = next,
};
