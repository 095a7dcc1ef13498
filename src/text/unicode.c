/* SPDX-License-Identifier: Apache-2.0
 * unicode.c: see unicode.h. Blocks of 64 code points; equal blocks are stored once. */
#include "text/unicode.h"

#include "text/unicode_table.h"

uint8_t unicode_of(uint32_t code) {
    if (code >= 0x110000) return UNICODE_CN;
    return properties[(uint32_t)block_of[code >> 6] << 6 | (code & 63)];
}
