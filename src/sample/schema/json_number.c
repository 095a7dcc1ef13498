/* SPDX-License-Identifier: Apache-2.0
 *
 * json_number.c: numbers within bounds, digit by digit; see json_text.h.
 *
 * A reader of JSON rounds to a double. Rounding keeps order, so "at most" survives it, but "less
 * than" only while both numbers have at most 15 digits, which doubles tell apart: that bounds the
 * digits here. Numbers with bounds are written without exponents, and never as -0. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sample/schema/json_text.h"

enum {
    EXACT = 15,          /* digits that a double tells apart */
    FRACTION_MOST = 40,  /* digits behind the point of a bound */
    MULTIPLES_MOST = 2000, /* that are listed one by one */
    MODULUS_MOST = 128,  /* of the automaton */
    MODULUS_DIGITS = 15,
};
#define WHOLE_MOST INT64_C(999999999999999999) /* JSON_DIGITS nines */

/* A number that is not negative: whole.fraction, without zeros at the end. */
struct decimal {
    int64_t whole; /* WHOLE_MOST + 1: beyond what is written */
    char fraction[FRACTION_MOST + 1];
    int n; /* digits of the fraction */
    bool open; /* the bound itself is outside */
};

static grammar_expr seq2(struct json_text *t, grammar_expr a, grammar_expr b) {
    return grammar_seq(t->b, (const grammar_expr[]){a, b}, 2);
}
static grammar_expr alt2(struct json_text *t, grammar_expr a, grammar_expr b) {
    return grammar_alt(t->b, (const grammar_expr[]){a, b}, 2);
}
/* One digit of the range; nothing if it is empty. */
static grammar_expr digit(struct json_text *t, int low, int high) {
    struct grammar_range range = {(uint32_t)('0' + low), (uint32_t)('0' + high)};
    return low <= high ? grammar_class(t->b, &range, 1, false) : grammar_nothing(t->b);
}
static grammar_expr digits(struct json_text *t, int min, int max) {
    return grammar_repeat(t->b, digit(t, 0, 9), (uint32_t)min, (uint32_t)max);
}

/* ---- reading bounds -------------------------------------------------------------------------- */

void json_number_text(const json_t *number, char out[32]) {
    if (json_is_integer(number)) {
        snprintf(out, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
        return;
    }
    double x = json_real_value(number);
    for (int n = 1; n <= 17; n++) {
        snprintf(out, 32, "%.*g", n, x);
        if (strtod(out, NULL) == x) break;
    }
}

/* |number|. False: it has more digits behind the point than are kept. */
static bool read_decimal(const json_t *number, bool open, struct decimal *out) {
    char text[48], *e;
    int digits_n = 1, exponent;
    *out = (struct decimal){.open = open};
    if (json_is_integer(number)) {
        uint64_t x = (uint64_t)json_integer_value(number);
        if (json_integer_value(number) < 0) x = 0 - x;
        out->whole = x > (uint64_t)WHOLE_MOST ? WHOLE_MOST + 1 : (int64_t)x;
        return true;
    }
    double x = fabs(json_real_value(number));
    do snprintf(text, sizeof text, "%.*e", digits_n - 1, x);
    while (strtod(text, NULL) != x && ++digits_n <= 17);
    e = strchr(text, 'e');
    exponent = (int)strtol(e + 1, NULL, 10);
    if (exponent >= JSON_DIGITS) {
        out->whole = WHOLE_MOST + 1;
        return true;
    }
    /* digit k of the mantissa stands at 10^(exponent - k) */
    for (int k = 0, at = 0; text + at < e; at++) {
        if (text[at] == '.') continue;
        int place = exponent - k++;
        if (place >= 0) {
            int64_t unit = 1;
            for (int i = 0; i < place; i++) unit *= 10;
            out->whole += unit * (text[at] - '0');
        } else {
            if (-place > FRACTION_MOST) return text[at] == '0' && x == 0;
            while (out->n < -place - 1) out->fraction[out->n++] = '0';
            out->fraction[out->n++] = text[at];
        }
    }
    while (out->n && out->fraction[out->n - 1] == '0') out->n--;
    return true;
}

static int digits_of(int64_t x) {
    int n = 1;
    for (; x >= 10; x /= 10) n++;
    return n;
}

/* ---- whole numbers --------------------------------------------------------------------------- */

/* Digits from i on that are at least (`up`) or at most those of `s`. */
static grammar_expr beyond(struct json_text *t, const char *s, bool up, int i) {
    int n = (int)strlen(s);
    if (i == n) return grammar_empty(t->b);
    int d = s[i] - '0';
    grammar_expr same = seq2(t, digit(t, d, d), beyond(t, s, up, i + 1));
    grammar_expr other = up ? digit(t, d + 1, 9) : digit(t, 0, d - 1);
    return alt2(t, same, seq2(t, other, digits(t, n - i - 1, n - i - 1)));
}

/* Between two numbers of equally many digits. */
static grammar_expr between_equal(struct json_text *t, const char *low, const char *high, int i) {
    int n = (int)strlen(low);
    if (i == n) return grammar_empty(t->b);
    int l = low[i] - '0', h = high[i] - '0';
    if (l == h) return seq2(t, digit(t, l, l), between_equal(t, low, high, i + 1));
    grammar_expr part[3] = {
        seq2(t, digit(t, l, l), beyond(t, low, true, i + 1)),
        seq2(t, digit(t, l + 1, h - 1), digits(t, n - i - 1, n - i - 1)),
        seq2(t, digit(t, h, h), beyond(t, high, false, i + 1)),
    };
    return grammar_alt(t->b, part, 3);
}

/* 0 <= low; nothing if low > high. */
static grammar_expr whole_between(struct json_text *t, int64_t low, int64_t high) {
    grammar_expr part[JSON_DIGITS + 1];
    size_t n = 0;
    for (int64_t from = low; from <= high;) {
        int64_t to = 9; /* the last number of as many digits */
        while (to < from) to = to * 10 + 9;
        if (to > high) to = high;
        char a[24], b[24];
        snprintf(a, sizeof a, "%" PRId64, from);
        snprintf(b, sizeof b, "%" PRId64, to);
        part[n++] = between_equal(t, a, b, 0);
        from = to + 1;
    }
    return n ? grammar_alt(t->b, part, n) : grammar_nothing(t->b);
}

/* ---- fractions ------------------------------------------------------------------------------- */

/* Digits behind the point, `room` more at most, of a number that has equalled the bounds so far
 * (NULL: it is already past this one), to lie between them. */
static grammar_expr fraction(struct json_text *t, const struct decimal *low,
                             const struct decimal *high, int i, int room, bool may_end) {
    if (low && i >= low->n && !low->open) low = NULL;
    bool ends = may_end && !(low && (i < low->n || low->open)) &&
                !(high && i >= high->n && high->open);
    grammar_expr end = ends ? grammar_empty(t->b) : grammar_nothing(t->b);
    if (room <= 0) return end;
    if (!low && !high) return alt2(t, end, digits(t, 1, room));
    int l = low && i < low->n ? low->fraction[i] - '0' : 0;
    int h = !high ? 9 : i < high->n ? high->fraction[i] - '0' : 0;
    grammar_expr part[4] = {end};
    size_t n = 1;
    if (low && high && l == h) {
        part[n++] = seq2(t, digit(t, l, l), fraction(t, low, high, i + 1, room - 1, true));
    } else if (l <= h) {
        int from = low ? l + 1 : 0, to = high ? h - 1 : 9;
        if (low)
            part[n++] = seq2(t, digit(t, l, l), fraction(t, low, NULL, i + 1, room - 1, true));
        part[n++] = seq2(t, digit(t, from, to), digits(t, 0, room - 1));
        if (high)
            part[n++] = seq2(t, digit(t, h, h), fraction(t, NULL, high, i + 1, room - 1, true));
    }
    return grammar_alt(t->b, part, n);
}

/* A fraction, or none. */
static grammar_expr point(struct json_text *t, const struct decimal *low,
                          const struct decimal *high, int room) {
    grammar_expr some = seq2(t, json_word(t, "."), fraction(t, low, high, 0, room, false));
    bool none = !(low && (low->n || low->open)) && !(high && !high->n && high->open);
    return none ? alt2(t, grammar_empty(t->b), some) : some;
}

/* Between two numbers that are not negative; high NULL: no bound. */
static grammar_expr real_between(struct json_text *t, const struct decimal *low,
                                 const struct decimal *high) {
    int64_t last = high && high->whole <= WHOLE_MOST ? high->whole : WHOLE_MOST + 1;
    grammar_expr part[3];
    size_t n = 0;
    if (low->whole > WHOLE_MOST || low->whole > last) return grammar_nothing(t->b);
    int longest = digits_of(high ? (last > WHOLE_MOST ? WHOLE_MOST : last) : low->whole);
    int room = longest < EXACT ? EXACT - longest : 1;
    if (room < low->n) room = low->n;
    if (high && room < high->n) room = high->n;
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, low->whole);
    grammar_expr whole = json_word(t, text);
    if (last == low->whole) return seq2(t, whole, point(t, low, high, room));
    part[n++] = seq2(t, whole, point(t, low, NULL, room));
    if (low->whole + 1 <= last - 1)
        part[n++] = seq2(t, whole_between(t, low->whole + 1, last - 1), point(t, NULL, NULL, room));
    if (last <= WHOLE_MOST) {
        snprintf(text, sizeof text, "%" PRId64, last);
        part[n++] = seq2(t, json_word(t, text), point(t, NULL, high, room));
    }
    return grammar_alt(t->b, part, n);
}

/* A bound that must not be reached needs digits that doubles tell apart. */
static ob_status check(const struct decimal *min, const struct decimal *max, ob_error *error) {
    const struct decimal *both[2] = {min, max};
    int whole = 1, n = 0;
    bool open = false;
    for (int i = 0; i < 2; i++) {
        if (both[i]->whole > WHOLE_MOST) continue;
        if (digits_of(both[i]->whole) > whole) whole = digits_of(both[i]->whole);
        if (both[i]->n > n) n = both[i]->n;
        open |= both[i]->open;
    }
    if (!open || whole + n <= EXACT) return OB_OK;
    return error_set(error, OB_ERR_ARGUMENT,
                     "an exclusive bound with more than %d digits is not supported", EXACT);
}

static ob_status real_expr(struct json_text *t, const struct json_range *r, grammar_expr *out,
                           ob_error *error) {
    struct decimal min = {0}, max = {0};
    static const struct decimal zero = {0}, above_zero = {.open = true};
    if ((r->min && !read_decimal(r->min, r->above_min, &min)) ||
        (r->max && !read_decimal(r->max, r->below_max, &max)))
        return error_set(error, OB_ERR_ARGUMENT, "a bound so near to 0 is not supported");
    ob_status s = check(&min, &max, error);
    if (s != OB_OK) return s;
    bool min_negative = !r->min || json_number_value(r->min) < 0;
    bool max_negative = r->max && json_number_value(r->max) < 0;
    grammar_expr part[2];
    size_t n = 0;
    if (!max_negative)
        part[n++] = real_between(t, min_negative ? &zero : &min, r->max ? &max : NULL);
    if (min_negative)
        part[n++] = seq2(t, json_word(t, "-"),
                         real_between(t, max_negative ? &max : &above_zero, r->min ? &min : NULL));
    *out = n ? grammar_alt(t->b, part, n) : grammar_nothing(t->b);
    return OB_OK;
}

/* ---- integers -------------------------------------------------------------------------------- */

/* The least integer not below the bound, or, mirrored, the greatest not above it. */
static int64_t integer_bound(const json_t *bound, bool open, int sign) {
    if (!bound) return -WHOLE_MOST * sign;
    struct decimal d;
    bool kept = read_decimal(bound, open, &d); /* else it is a hair from 0 */
    bool negative = json_is_integer(bound) ? json_integer_value(bound) < 0
                                           : json_real_value(bound) < 0;
    bool whole = kept && d.n == 0;
    if (d.whole > WHOLE_MOST) { /* no number that is written lies beyond: all do, or none */
        bool none = negative == (sign < 0);
        return none ? (WHOLE_MOST + 1) * sign : -WHOLE_MOST * sign;
    }
    int64_t x = negative ? -d.whole : d.whole; /* cut towards 0 */
    if (whole) return open ? x + sign : x;
    return negative == (sign < 0) ? x + sign : x;
}

static grammar_expr integers_between(struct json_text *t, int64_t low, int64_t high) {
    grammar_expr part[2];
    size_t n = 0;
    if (low > high) return grammar_nothing(t->b);
    if (high >= 0) part[n++] = whole_between(t, low > 0 ? low : 0, high);
    if (low < 0)
        part[n++] = seq2(t, json_word(t, "-"), whole_between(t, high < 0 ? -high : 1, -low));
    return grammar_alt(t->b, part, n);
}

/* Each of them. */
static grammar_expr list_multiples(struct json_text *t, int64_t first, int64_t high, int64_t m) {
    grammar_expr part[MULTIPLES_MOST];
    size_t n = 0;
    for (int64_t x = first; x <= high && n < MULTIPLES_MOST; x += m) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, x);
        part[n++] = json_word(t, text);
    }
    return n ? grammar_alt(t->b, part, n) : grammar_nothing(t->b);
}

/* Positive multiples of up to MODULUS_DIGITS digits: rule [room][rest] is what may follow digits
 * that leave `rest`, with room for so many more. Rooms are made from the last to the first, so a
 * rule only uses those that are there. */
static grammar_expr multiples(struct json_text *t, int64_t m) {
    grammar_expr next[MODULUS_MOST], now[MODULUS_MOST];
    for (int room = 0; room < MODULUS_DIGITS; room++) {
        for (int64_t rest = 0; rest < m; rest++) {
            grammar_expr part[11];
            size_t n = 0;
            if (rest == 0) part[n++] = grammar_empty(t->b);
            for (int d = 0; room && d < 10; d++)
                part[n++] = seq2(t, digit(t, d, d), next[(rest * 10 + d) % m]);
            grammar_rule rule = grammar_rule_new(t->b, "a multiple");
            grammar_define(t->b, rule,
                           n ? grammar_alt(t->b, part, n) : grammar_nothing(t->b));
            now[rest] = grammar_use(t->b, rule);
        }
        memcpy(next, now, (size_t)m * sizeof *next);
    }
    grammar_expr first[9];
    for (int d = 1; d < 10; d++) first[d - 1] = seq2(t, digit(t, d, d), next[d % m]);
    return grammar_alt(t->b, first, 9);
}

static ob_status multiple_expr(struct json_text *t, int64_t low, int64_t high, int64_t m,
                               grammar_expr *out, ob_error *error) {
    int64_t first = low / m * m;
    if (first < low) first += m;
    if (high < first || (high - first) / m < MULTIPLES_MOST) {
        *out = list_multiples(t, first, high, m);
        return OB_OK;
    }
    if (m > MODULUS_MOST || high != WHOLE_MOST || (low != -WHOLE_MOST && (low < 0 || low > m)))
        return error_set(error, OB_ERR_ARGUMENT,
                         "multiples are supported between bounds that hold at most %d of them, or "
                         "up to %d without bounds or from 0", MULTIPLES_MOST, MODULUS_MOST);
    grammar_expr positive = multiples(t, m);
    grammar_expr part[3] = {positive, json_word(t, "0"), seq2(t, json_word(t, "-"), positive)};
    if (low > 0) *out = positive;
    else *out = grammar_alt(t->b, part, low < 0 ? 3 : 2);
    return OB_OK;
}

ob_status json_number_expr(struct json_text *t, const struct json_range *r, grammar_expr *out,
                           ob_error *error) {
    *out = r->integer ? t->integer : t->number;
    if (!r->min && !r->max && r->multiple <= 1 && (r->integer || !r->multiple)) return OB_OK;
    if (!r->integer && !r->multiple) return real_expr(t, r, out, error);
    int64_t low = integer_bound(r->min, r->above_min, 1);
    int64_t high = integer_bound(r->max, r->below_max, -1);
    if (r->multiple > 1) return multiple_expr(t, low, high, r->multiple, out, error);
    *out = integers_between(t, low, high);
    return OB_OK;
}
