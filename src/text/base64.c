/* SPDX-License-Identifier: Apache-2.0
 * base64.c: see base64.h. */
#include "text/base64.h"

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool base64_decode(struct str text, char *out, size_t *n) {
    uint32_t bits = 0;
    unsigned have = 0;
    *n = 0;
    while (text.n && text.p[text.n - 1] == '=') text.n--;
    for (size_t i = 0; i < text.n; i++) {
        int digit = digit_of(text.p[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out[(*n)++] = (char)(bits >> have & 255);
    }
    return true;
}
