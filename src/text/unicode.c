/* SPDX-License-Identifier: Apache-2.0
 * unicode.c: see unicode.h. Blocks of 64 code points; equal blocks are stored once. */
#include "text/unicode.h"

#include "text/unicode_table.h"

uint8_t unicode_of(uint32_t code) {
    if (code >= 0x110000) return UNICODE_CN;
    return properties[(uint32_t)block_of[code >> 6] << 6 | (code & 63)];
}

bool unicode_is_word(uint32_t code) {
    uint8_t c = unicode_of(code) & UNICODE_CATEGORY;
    if ((c >= UNICODE_LU && c <= UNICODE_NL) || c == UNICODE_PC) return true;
    return c == UNICODE_SO && /* circled and squared letters */
           ((code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
            (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189));
}
