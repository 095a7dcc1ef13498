/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok_runs.c: expressions that take a character of a class, a few, or a run of them, and those
 * that cut long numbers into threes from the right, which would be quadratic by their expressions:
 * they look ahead to the end of the number at each of its digits. */
#include "text/pretok.h"
#include "text/pretok_scan.h"

static bool find_run(const char *p, size_t n, size_t from, unsigned classes, size_t most,
                     size_t *start, size_t *end) {
    struct scan_char c;
    for (size_t at = from; at < n; at += c.n) {
        c = scan_at(p, n, at);
        if (!scan_in(c, classes)) continue;
        *start = at;
        *end = scan_run(p, n, at, classes, most);
        return true;
    }
    return false;
}

static bool find_digit(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    return find_run(p, n, from, SCAN_NUMBER, 1, start, end);
}
static bool find_digits(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    return find_run(p, n, from, SCAN_NUMBER, SIZE_MAX, start, end);
}
static bool find_digits3(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    return find_run(p, n, from, SCAN_NUMBER, 3, start, end);
}

static bool find_newline(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    for (size_t at = from; at < n; at++)
        if (p[at] == '\n' || p[at] == '\r') {
            *start = at;
            *end = at + 1;
            return true;
        }
    return false;
}

static size_t next_lines(const char *p, size_t n) {
    bool newline = p[0] == '\n';
    size_t at = 1;
    while (at < n && (p[at] == '\n') == newline) at++;
    return at;
}

const struct rule rule_digit = {.regex = "\\p{N}", .find = find_digit};
const struct rule rule_digits = {.regex = "\\p{N}+", .find = find_digits};
const struct rule rule_digits3 = {.regex = "\\p{N}{1,3}", .find = find_digits3};
const struct rule rule_lines = {.regex = "[^\\n]+|[\\n]+", .next = next_lines};
const struct rule rule_newline = {.regex = "[\\r\\n]", .find = find_newline};

/* ---- threes from the right ---- */

static bool in_number(struct scan_char c, bool decimal) {
    if (!scan_in(c, SCAN_NUMBER)) return false;
    return !decimal || c.code < 0x80 || (c.of & UNICODE_CATEGORY) == UNICODE_ND;
}

static size_t count(const char *p, size_t n, size_t at, bool decimal, size_t most, size_t *end) {
    struct scan_char c;
    size_t digits = 0;
    for (; digits < most && in_number(c = scan_at(p, n, at), decimal); at += c.n) digits++;
    *end = at;
    return digits;
}

/* Is the character before `from` one of a number? */
static bool inside_number(const char *p, size_t n, size_t from, bool decimal) {
    if (from == 0) return false;
    size_t back = from - 1;
    while (back > 0 && ((unsigned char)p[back] & 0xc0) == 0x80) back--;
    return in_number(scan_at(p, n, back), decimal);
}

/* The next group of a number: `from` is at its beginning or after a group of it. Only at its
 * beginning are its digits counted: at each group that would be quadratic. */
static bool find_threes(const char *p, size_t n, size_t from, bool decimal, bool bounded,
                        size_t *start, size_t *end) {
    struct scan_char c;
    bool inside = inside_number(p, n, from, decimal);
    for (size_t at = from, stop; at < n; at += c.n, inside = false) {
        c = scan_at(p, n, at);
        if (!in_number(c, decimal)) continue;
        size_t lead = 0;
        if (!inside) {
            lead = count(p, n, at, decimal, SIZE_MAX, &stop) % 3;
            if (bounded && stop < n && scan_word(scan_at(p, n, stop))) {
                c.n = stop - at; /* no group: it ends within a word */
                continue;
            }
        }
        *start = at;
        count(p, n, at, decimal, lead ? lead : 3, end);
        return true;
    }
    return false;
}

static bool find_right(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    return find_threes(p, n, from, false, false, start, end);
}
static bool find_thousands(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    return find_threes(p, n, from, true, true, start, end);
}

/* The expression's matches have no length and are before each group of three. Here that is so for
 * the last group of a number; others are matched whole, which cuts at the same places. */
static bool find_superbpe(const char *p, size_t n, size_t from, size_t *start, size_t *end) {
    struct scan_char c;
    bool inside = inside_number(p, n, from, true);
    for (size_t at = from, stop; at < n; at += c.n, inside = false) {
        c = scan_at(p, n, at);
        if (!in_number(c, true)) continue;
        size_t digits = count(p, n, at, true, inside ? 4 : SIZE_MAX, &stop);
        if (digits < 3) {
            c.n = stop - at;
            continue;
        }
        size_t lead = inside ? 0 : digits % 3;
        count(p, n, at, true, lead, start);
        if (digits - lead == 3) *end = *start;
        else count(p, n, *start, true, 3, end);
        return true;
    }
    return false;
}

/* Trinity's expression splits differently, to the same effect: this one stands for it. */
const struct rule rule_digits_right = {
    .regex = "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?:\\P{N}|$))",
    .find = find_right,
};
const struct rule rule_superbpe = {.regex = "(?=(\\d{3})+(?!\\d))", .find = find_superbpe};
const struct rule rule_thousands = {
    .regex = "\\d{1,3}(?=(?:\\d{3})*\\b)",
    .find = find_thousands,
};
