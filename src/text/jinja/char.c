/* SPDX-License-Identifier: Apache-2.0
 *
 * char.c: see char.h. */
#include "text/jinja/char.h"

#include <utf8proc.h>

#include "base/utf8.h"

bool char_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool char_line_break(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

static utf8proc_category_t category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

bool char_printable(uint32_t c) {
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CN: case UTF8PROC_CATEGORY_CC: case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS: case UTF8PROC_CATEGORY_CO: case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
    }
}

bool char_alpha(uint32_t c) {
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}

bool char_decimal(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool char_digit(uint32_t c) {
    /* beyond decimals: superscripts, subscripts and the common circled digits */
    return char_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 ||
           (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
           (c >= 0x2460 && c <= 0x2468);
}

bool char_numeric(uint32_t c) {
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

/* The derived properties Uppercase and Lowercase: the categories and what PropList adds. */
bool char_upper(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) ||
           (c >= 0x24b6 && c <= 0x24cf) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool char_lower(uint32_t c) {
    return category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba ||
           (c >= 0x2b0 && c <= 0x2b8) || c == 0x2c0 || c == 0x2c1 || (c >= 0x2e0 && c <= 0x2e4) ||
           c == 0x345 || c == 0x37a || (c >= 0x1d2c && c <= 0x1d6a) || c == 0x1d78 ||
           (c >= 0x1d9b && c <= 0x1dbf) || c == 0x2071 || c == 0x207f ||
           (c >= 0x2090 && c <= 0x209c) || (c >= 0x2170 && c <= 0x217f) ||
           (c >= 0x24d0 && c <= 0x24e9) || c == 0x2c7c || c == 0x2c7d || c == 0xa69c ||
           c == 0xa69d || c == 0xa770 || c == 0xa7f8 || c == 0xa7f9 ||
           (c >= 0xab5c && c <= 0xab5f);
}

bool char_cased(uint32_t c) {
    return char_upper(c) || char_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

bool char_case_ignorable(uint32_t c) {
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_SK:
        return true;
    default: /* Word_Break = MidLetter, MidNumLet, Single_Quote */
        return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x387 || c == 0x55f ||
               c == 0x5f4 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027 ||
               c == 0xfe13 || c == 0xfe52 || c == 0xfe55 || c == 0xff07 || c == 0xff0e ||
               c == 0xff1a;
    }
}

/* ---- case mappings ---- */

/* Characters whose upper or title case has several; from Unicode's SpecialCasing.txt. */
static const struct {
    uint16_t from, upper[3], title[3];
} special[] = {
    {0xdf, {0x53, 0x53}, {0x53, 0x73}}, {0x149, {0x2bc, 0x4e}, {0x2bc, 0x4e}},
    {0x1f0, {0x4a, 0x30c}, {0x4a, 0x30c}}, {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x587, {0x535, 0x552}, {0x535, 0x582}}, {0x1e96, {0x48, 0x331}, {0x48, 0x331}},
    {0x1e97, {0x54, 0x308}, {0x54, 0x308}}, {0x1e98, {0x57, 0x30a}, {0x57, 0x30a}},
    {0x1e99, {0x59, 0x30a}, {0x59, 0x30a}}, {0x1e9a, {0x41, 0x2be}, {0x41, 0x2be}},
    {0x1f50, {0x3a5, 0x313}, {0x3a5, 0x313}},
    {0x1f52, {0x3a5, 0x313, 0x300}, {0x3a5, 0x313, 0x300}},
    {0x1f54, {0x3a5, 0x313, 0x301}, {0x3a5, 0x313, 0x301}},
    {0x1f56, {0x3a5, 0x313, 0x342}, {0x3a5, 0x313, 0x342}},
    {0x1fb2, {0x1fba, 0x399}, {0x1fba, 0x345}}, {0x1fb3, {0x391, 0x399}, {0x1fbc}},
    {0x1fb4, {0x386, 0x399}, {0x386, 0x345}}, {0x1fb6, {0x391, 0x342}, {0x391, 0x342}},
    {0x1fb7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}}, {0x1fbc, {0x391, 0x399}, {0x1fbc}},
    {0x1fc2, {0x1fca, 0x399}, {0x1fca, 0x345}}, {0x1fc3, {0x397, 0x399}, {0x1fcc}},
    {0x1fc4, {0x389, 0x399}, {0x389, 0x345}}, {0x1fc6, {0x397, 0x342}, {0x397, 0x342}},
    {0x1fc7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}}, {0x1fcc, {0x397, 0x399}, {0x1fcc}},
    {0x1fd2, {0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}},
    {0x1fd3, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x1fd6, {0x399, 0x342}, {0x399, 0x342}},
    {0x1fd7, {0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}},
    {0x1fe2, {0x3a5, 0x308, 0x300}, {0x3a5, 0x308, 0x300}},
    {0x1fe3, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x1fe4, {0x3a1, 0x313}, {0x3a1, 0x313}}, {0x1fe6, {0x3a5, 0x342}, {0x3a5, 0x342}},
    {0x1fe7, {0x3a5, 0x308, 0x342}, {0x3a5, 0x308, 0x342}},
    {0x1ff2, {0x1ffa, 0x399}, {0x1ffa, 0x345}}, {0x1ff3, {0x3a9, 0x399}, {0x1ffc}},
    {0x1ff4, {0x38f, 0x399}, {0x38f, 0x345}}, {0x1ff6, {0x3a9, 0x342}, {0x3a9, 0x342}},
    {0x1ff7, {0x3a9, 0x342, 0x399}, {0x3a9, 0x342, 0x345}}, {0x1ffc, {0x3a9, 0x399}, {0x1ffc}},
    {0xfb00, {0x46, 0x46}, {0x46, 0x66}}, {0xfb01, {0x46, 0x49}, {0x46, 0x69}},
    {0xfb02, {0x46, 0x4c}, {0x46, 0x6c}}, {0xfb03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
    {0xfb04, {0x46, 0x46, 0x4c}, {0x46, 0x66, 0x6c}}, {0xfb05, {0x53, 0x54}, {0x53, 0x74}},
    {0xfb06, {0x53, 0x54}, {0x53, 0x74}}, {0xfb13, {0x544, 0x546}, {0x544, 0x576}},
    {0xfb14, {0x544, 0x535}, {0x544, 0x565}}, {0xfb15, {0x544, 0x53b}, {0x544, 0x56b}},
    {0xfb16, {0x54e, 0x546}, {0x54e, 0x576}}, {0xfb17, {0x544, 0x53d}, {0x544, 0x56d}},
};

size_t char_map(uint32_t c, enum char_case to, uint32_t out[3]) {
    if (c >= 0x80 && to == CHAR_UPPER && c >= 0x1f80 && c <= 0x1faf) {
        /* Greek with iota subscript, three groups of 16: the capital and a capital iota */
        static const uint16_t capital[] = {0x1f08, 0x1f28, 0x1f68};
        out[0] = capital[(c - 0x1f80) >> 4] + (c & 7);
        out[1] = 0x399;
        return 2;
    }
    if (c == 0x130 && to == CHAR_LOWER) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    if (c >= 0x80 && to != CHAR_LOWER) {
        size_t low = 0, high = sizeof special / sizeof special[0];
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (special[mid].from < c) low = mid + 1;
            else high = mid;
        }
        if (low < sizeof special / sizeof special[0] && special[low].from == c) {
            const uint16_t *map = to == CHAR_UPPER ? special[low].upper : special[low].title;
            size_t n = 0;
            for (; n < 3 && map[n]; n++) out[n] = map[n];
            return n;
        }
    }
    utf8proc_int32_t k = (utf8proc_int32_t)c;
    out[0] = (uint32_t)(to == CHAR_UPPER   ? utf8proc_toupper(k)
                        : to == CHAR_LOWER ? utf8proc_tolower(k)
                                              : utf8proc_totitle(k));
    return 1;
}

/* ---- walking text ---- */

size_t char_space_at(const char *p, const char *end) {
    if (p >= end) return 0;
    uint32_t c;
    size_t n = utf8_decode(p, (size_t)(end - p), &c);
    return char_space(c) ? n : 0;
}

const char *char_back(const char *start, const char *end) {
    do end--;
    while (end > start && (*end & 0xc0) == 0x80);
    return end;
}

size_t char_space_before(const char *start, const char *end) {
    if (start >= end) return 0;
    const char *p = char_back(start, end);
    return char_space_at(p, end);
}

size_t char_count(const char *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += (p[i] & 0xc0) != 0x80;
    return count;
}
