/* SPDX-License-Identifier: Apache-2.0
 * utf8.h: UTF-8 as RFC 3629 defines it (no surrogates, no overlong forms, up to U+10FFFF). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes one character of p[0..n), n >= 1. Returns its length 1-4 and the code point; malformed
 * bytes give length 1 and *code = UTF8_BAD. */
#define UTF8_BAD UINT32_MAX
size_t utf8_decode(const char *p, size_t n, uint32_t *code);
/* Writes the 1-4 bytes of a code point <= 0x10FFFF. */
size_t utf8_encode(uint32_t code, char out[4]);
/* The longest prefix of p[0..n) that does not end inside a character which more bytes could
 * complete: what a stream may emit now. Malformed bytes count as whole. */
size_t utf8_whole(const char *p, size_t n);

#endif
