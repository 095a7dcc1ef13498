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
    if (scan_letter(d)) return scan_run(p, n, at, scan_letter, SIZE_MAX);
    if (scan_number(d)) return scan_run(p, n, at, scan_number, SIZE_MAX);
    if (scan_other(d)) return scan_run(p, n, at, scan_other, SIZE_MAX);
    return scan_spaces(p, n);
}

static const char *const names[] = {"gpt-2", "gpt2", "default", "mpt", NULL};

const struct pretok pretok_gpt2 = {
    .name = "gpt2",
    .gguf = names,
    .regex = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    .next = next,
};
