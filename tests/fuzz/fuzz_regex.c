/* SPDX-License-Identifier: Apache-2.0
 * fuzz_regex.c: any bytes as an expression of a tokenizer file, up to a NUL, and a text after it.
 * What is taken finds matches that lie in the text, in order. */
#include <stdlib.h>

#include "base/base.h"
#include "text/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool well_formed(struct str text) {
    uint32_t code = 0;
    for (size_t at = 0; at < text.n && code != UTF8_BAD;)
        at += utf8_decode(text.p + at, text.n - at, &code);
    return code != UTF8_BAD;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *p = (const char *)bytes, *nul = size ? memchr(p, 0, size) : NULL;
    struct str pattern = {p, nul ? (size_t)(nul - p) : size};
    struct str text = {nul ? nul + 1 : "", nul ? size - pattern.n - 1 : 0};
    struct regex *regex;
    struct regex_work work = {0};
    if (pattern.n > 150 || text.n > 64 || !well_formed(text)) return 0;
    if (regex_open(pattern, &regex, NULL) != OB_OK) return 0;
    size_t at = 0, start, end;
    while (at <= text.n && regex_find(regex, &work, text, at, &start, &end) == REGEX_FOUND) {
        if (start < at || end < start || end > text.n) abort();
        at = end > at ? end : at + 1;
        while (at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80) at++;
    }
    regex_work_free(&work);
    regex_close(&regex);
    return 0;
}
