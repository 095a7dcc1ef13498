/* SPDX-License-Identifier: Apache-2.0
 *
 * unicode.h: what the regular expressions of pre-tokenizers ask about a code point, in the Unicode
 * version of the reference (see tools/make_unicode.py). Any value is a valid argument; what is no
 * code point, UTF8_BAD too, counts as unassigned. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

enum unicode_category {
    UNICODE_CN, UNICODE_LU, UNICODE_LL, UNICODE_LT, UNICODE_LM, UNICODE_LO, UNICODE_MN, UNICODE_MC,
    UNICODE_ME, UNICODE_ND, UNICODE_NL, UNICODE_NO, UNICODE_PC, UNICODE_PD, UNICODE_PS, UNICODE_PE,
    UNICODE_PI, UNICODE_PF, UNICODE_PO, UNICODE_SM, UNICODE_SC, UNICODE_SK, UNICODE_SO, UNICODE_ZS,
    UNICODE_ZL, UNICODE_ZP, UNICODE_CC, UNICODE_CF, UNICODE_CO
};
enum {
    UNICODE_CATEGORY = 0x1f, /* mask of the category in unicode_of() */
    UNICODE_SPACE = 0x20,    /* \s */
    UNICODE_NFC_ACTS = 0x40, /* NFC may change a text at this code point */
    UNICODE_NFC_BEFORE = 0x80 /* NFC may join what follows to this code point */
};

uint8_t unicode_of(uint32_t code);

static inline bool unicode_is_letter(uint8_t of) { /* \p{L} */
    uint8_t c = of & UNICODE_CATEGORY;
    return c >= UNICODE_LU && c <= UNICODE_LO;
}
static inline bool unicode_is_number(uint8_t of) { /* \p{N} */
    uint8_t c = of & UNICODE_CATEGORY;
    return c >= UNICODE_ND && c <= UNICODE_NO;
}
static inline bool unicode_is_mark(uint8_t of) { /* \p{M} */
    uint8_t c = of & UNICODE_CATEGORY;
    return c >= UNICODE_MN && c <= UNICODE_ME;
}
static inline bool unicode_is_space(uint8_t of) { return (of & UNICODE_SPACE) != 0; }

/* \w: letters, marks, digits, connectors, and what is alphabetic besides. */
bool unicode_is_word(uint32_t code);

#endif
