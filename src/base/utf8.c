/* SPDX-License-Identifier: Apache-2.0
 * utf8.c: see utf8.h. */
#include "base/utf8.h"

/* Length a lead byte announces, 0 if it cannot lead. */
static size_t lead(unsigned char c) {
    if (c < 0x80) return 1;
    if (c >= 0xc2 && c <= 0xdf) return 2;
    if (c >= 0xe0 && c <= 0xef) return 3;
    if (c >= 0xf0 && c <= 0xf4) return 4;
    return 0;
}

/* May byte c stand at index i (1..3) after lead byte l? */
static int follows(unsigned char l, size_t i, unsigned char c) {
    if (i == 1) {
        if (l == 0xe0) return c >= 0xa0 && c <= 0xbf;
        if (l == 0xed) return c >= 0x80 && c <= 0x9f;
        if (l == 0xf0) return c >= 0x90 && c <= 0xbf;
        if (l == 0xf4) return c >= 0x80 && c <= 0x8f;
    }
    return c >= 0x80 && c <= 0xbf;
}

size_t utf8_decode(const char *p, size_t n, uint32_t *code) {
    unsigned char l = (unsigned char)p[0];
    size_t len = lead(l);
    *code = UTF8_BAD;
    if (len == 0 || len > n) return 1;
    uint32_t c = len == 1 ? l : l & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        unsigned char b = (unsigned char)p[i];
        if (!follows(l, i, b)) return 1;
        c = c << 6 | (b & 0x3f);
    }
    *code = c;
    return len;
}

size_t utf8_encode(uint32_t c, char out[4]) {
    if (c < 0x80) return out[0] = (char)c, 1;
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> len) | c);
    return len;
}

size_t utf8_whole(const char *p, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char l = (unsigned char)p[n - back];
        if ((l & 0xc0) == 0x80) continue;
        size_t len = lead(l);
        if (len <= back) return n;
        for (size_t i = 1; i < back; i++)
            if (!follows(l, i, (unsigned char)p[n - back + i])) return n;
        return n - back;
    }
    return n;
}
