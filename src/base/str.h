/* SPDX-License-Identifier: Apache-2.0
 * str.h: a borrowed run of bytes, not terminated; the owner is whoever made it. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct str {
    const char *p;
    size_t n;
};

#define STR_LIT(s) ((struct str){(s), sizeof(s) - 1})
/* For printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)((s).n > 200 ? 200 : (s).n), (s).p

static inline struct str str_of(const char *s) { return (struct str){s, s ? strlen(s) : 0}; }
static inline bool str_eq(struct str a, struct str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
/* Byte order, as memcmp. */
static inline int str_order(struct str a, struct str b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}
static inline bool str_is(struct str a, const char *b) { return str_eq(a, str_of(b)); }
static inline bool str_starts(struct str a, const char *prefix) {
    size_t n = strlen(prefix);
    return a.n >= n && memcmp(a.p, prefix, n) == 0;
}
static inline bool str_ends(struct str a, const char *suffix) {
    size_t n = strlen(suffix);
    return a.n >= n && memcmp(a.p + a.n - n, suffix, n) == 0;
}
static inline bool str_contains(struct str a, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= a.n; i++)
        if (memcmp(a.p + i, word, n) == 0) return true;
    return false;
}
/* A number for a message: whole ones with all digits, others with the digits of a float. */
static inline const char *str_number(double x, char out[32]) {
    snprintf(out, 32, x == trunc(x) && fabs(x) < 1e19 ? "%.0f" : "%.9g", x);
    return out;
}
/* FNV-1a, 64 bit. For tables whose keys come from files, which are bounded by the file's size. */
static inline uint64_t str_hash(struct str s) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

#endif
