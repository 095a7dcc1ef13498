/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_num.c: filters about numbers: int, float, abs, round. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/run.h"
#include "text/jinja/char.h"

/* A number's spelling without white space around it and underscores between digits, in `out`;
 * false: not a plausible number. */
static bool spelling(const struct text *t, char *out, size_t size) {
    const char *p = t->p, *end = t->p + t->n;
    size_t n = 0, skip;
    while ((skip = char_space_at(p, end)) != 0) p += skip;
    while ((skip = char_space_before(p, end)) != 0) end -= skip;
    for (; p < end; p++) {
        if (*p == '_') {
            bool between = n && isalnum((unsigned char)out[n - 1]) && p + 1 < end &&
                           isalnum((unsigned char)p[1]) && p[-1] != '_';
            if (!between) return false;
            continue;
        }
        if (n + 1 >= size || *p == 0) return false;
        out[n++] = *p;
    }
    out[n] = 0;
    return n != 0;
}

/* Python's float(): decimal, inf, nan; not C's hexadecimal. */
static bool parse_float(const struct text *t, double *out) {
    char text[400], *end;
    if (!spelling(t, text, sizeof text) || strpbrk(text, "xXpP()")) return false;
    *out = strtod(text, &end);
    return *end == 0;
}

/* Python's int(text, base). *big: a number beyond 64 bits. */
static bool parse_int(const struct text *t, int64_t base, int64_t *out, bool *big) {
    char text[400];
    *big = false;
    if (!spelling(t, text, sizeof text)) return false;
    const char *p = text;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    char prefix = *p == '0' ? (char)tolower((unsigned char)p[1]) : 0;
    int64_t marked = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (marked && (base == marked || base == 0)) {
        p += 2;
        base = marked;
    }
    if (base == 0) {
        if (*p == '0' && strspn(p, "0") != strlen(p)) return false; /* 0123 is ambiguous */
        base = 10;
    }
    if (!*p) return false;
    int64_t v = 0;
    for (; *p; p++) {
        int c = tolower((unsigned char)*p);
        int64_t d = isdigit(c) ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
        if (d >= base) return false;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, d, &v)) *big = true;
    }
    if (!negative && __builtin_sub_overflow(0, v, &v)) *big = true;
    *out = v;
    return true;
}

static bool int_of_float(struct run *r, double f, bool data, struct value *out) {
    if (!(fabs(f) < 0x1p63))
        return jinja_fail_large(r);
    *out = value_int((int64_t)f, data);
    return true;
}

bool filter_int(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    bool data = value_is_data(v), big;
    double f;
    struct value other = call->arg[0].kind == VALUE_MISSING ? value_int(0, data) : call->arg[0];
    int64_t i, base = value_is_int(call->arg[1]) ? value_as_int(call->arg[1]) : 10;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    if (value_is_int(v)) return *out = value_int(value_as_int(v), data), true;
    *out = other;
    if (v.kind == VALUE_FLOAT) {
        if (isinf(v.f)) return jinja_fail(r, "cannot convert float infinity to integer");
        return isnan(v.f) || int_of_float(r, v.f, data, out);
    }
    if (v.kind != VALUE_STRING) return true;
    bool base_ok = base == 0 || (base >= 2 && base <= 36);
    if (base_ok && parse_int(v.text, base, &i, &big)) {
        *out = value_int(i, data);
        return !big || jinja_fail_large(r);
    }
    if (!parse_float(v.text, &f) || isnan(f) || isinf(f)) return true;
    return int_of_float(r, f, data, out);
}

bool filter_float(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    bool data = value_is_data(v);
    double f;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    *out = call->arg[0].kind == VALUE_MISSING ? value_float(0, data) : call->arg[0];
    if (value_is_number(v)) *out = value_float(value_as_float(v), data);
    else if (v.kind == VALUE_STRING && parse_float(v.text, &f)) *out = value_float(f, data);
    return true;
}

bool filter_abs(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    if (v.kind == VALUE_FLOAT) return *out = value_float(fabs(v.f), v.data), true;
    if (value_is_int(v) && value_as_int(v) >= 0)
        return *out = value_int(value_as_int(v), v.data), true;
    if (value_is_int(v)) return jinja_unary(r, OP_NEG, v, out);
    return jinja_fail(r, "bad operand type for abs(): '%s'", jinja_type_name(v));
}

/* round(): halves to even, on the decimal value that was meant, so through the decimal text. */
static double round_to(double f, int64_t digits) {
    char text[420];
    if (!isfinite(f) || digits > 323) return f;
    if (digits < -308) return copysign(0, f);
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, f);
        return strtod(text, NULL);
    }
    double scale = pow(10, (double)-digits);
    return nearbyint(f / scale) * scale;
}

/* Integers stay integers: to a multiple of 10^-digits, halves to even. */
static bool round_int(struct run *r, int64_t v, int64_t digits, int64_t *out) {
    int64_t scale = 1;
    *out = v;
    if (digits >= 0) return true;
    for (; digits < 0; digits++)
        if (__builtin_mul_overflow(scale, 10, &scale)) return *out = 0, true;
    int64_t rest = v % scale, down = v - rest; /* towards zero */
    int64_t twice = rest < 0 ? -rest : rest, half = scale / 2;
    bool away = twice > half || (twice == half && (down / scale) % 2 != 0);
    *out = down;
    if (away && __builtin_add_overflow(down, rest < 0 ? -scale : scale, out))
        return jinja_fail_large(r);
    return true;
}

bool filter_round(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self, method = call->arg[1];
    int64_t digits = value_is_int(call->arg[0]) ? value_as_int(call->arg[0]) : 0;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    if (!value_is_number(v))
        return jinja_fail(r, "type %s doesn't define __round__ method", jinja_type_name(v));
    bool given = method.kind == VALUE_STRING;
    bool up = given && text_is(method.text, "ceil"), down = given && text_is(method.text, "floor");
    if (!up && !down) {
        if (method.kind != VALUE_MISSING && !(given && text_is(method.text, "common")))
            return jinja_fail(r, "method must be common, ceil or floor");
        if (v.kind == VALUE_FLOAT) return *out = value_float(round_to(v.f, digits), v.data), true;
        *out = value_int(0, v.data);
        return round_int(r, value_as_int(v), digits, &out->i);
    }
    /* func(value * 10**precision) / 10**precision, with Python's own operators */
    struct value scale, scaled;
    if (!jinja_binary(r, OP_POW, value_int(10, false), value_int(digits, false), &scale) ||
        !jinja_binary(r, OP_MUL, v, scale, &scaled))
        return false;
    if (scaled.kind == VALUE_FLOAT &&
        !int_of_float(r, up ? ceil(scaled.f) : floor(scaled.f), v.data, &scaled))
        return false;
    return jinja_binary(r, OP_DIV, scaled, scale, out);
}
