/* SPDX-License-Identifier: Apache-2.0
 *
 * char.h: what Python's str methods ask about characters. Properties and simple case mappings
 * come from utf8proc; the unconditional full mappings of Unicode's SpecialCasing are a table. */
#ifndef TEXT_JINJA_CHAR_H
#define TEXT_JINJA_CHAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool char_space(uint32_t c);      /* str.isspace */
bool char_line_break(uint32_t c); /* where str.splitlines splits; \r\n is one break */
bool char_printable(uint32_t c);  /* str.isprintable: what repr leaves as it is */
bool char_alpha(uint32_t c);
bool char_decimal(uint32_t c); /* str.isdecimal */
bool char_digit(uint32_t c);   /* str.isdigit */
bool char_numeric(uint32_t c); /* str.isnumeric */
bool char_upper(uint32_t c);
bool char_lower(uint32_t c);
bool char_cased(uint32_t c);
bool char_case_ignorable(uint32_t c);

enum char_case { CHAR_UPPER, CHAR_LOWER, CHAR_TITLE };
/* Writes the 1-3 characters that c maps to; returns how many. Without context: the final sigma is
 * the caller's. */
size_t char_map(uint32_t c, enum char_case to, uint32_t out[3]);

enum { CHAR_FOLDED = 4 };
/* The characters that c folds to (str.casefold), at most three; returns how many. */
size_t char_fold(uint32_t c, uint32_t out[CHAR_FOLDED]);

/* The length of the white space character at p, 0 if there is none. */
size_t char_space_at(const char *p, const char *end);
/* The length of the white space character that ends at `end`, 0 if there is none. */
size_t char_space_before(const char *start, const char *end);
/* Start of the character that ends at `end`, for valid UTF-8 and start < end. */
const char *char_back(const char *start, const char *end);
size_t char_count(const char *p, size_t n); /* characters of valid UTF-8 */

#endif
