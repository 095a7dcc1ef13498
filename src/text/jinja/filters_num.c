/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_num.c: filters about numbers: int, float, abs, round. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/run.h"
#include "text/jinja/char.h"

/* A number's spelling without white space around it and underscores between digits, terminated, in
 * *out; *plausible: it can be one. */
static bool spelling(struct run *r, const struct text *t, char **out, bool *plausible) {
    const char *p = t->p, *end = t->p + t->n;
    size_t n = 0, skip;
    char *text = *out = jinja_alloc(r, t->n + 1, 1);
    *plausible = false;
    if (!text || !jinja_steps_bytes(r, t->n)) return false;
    while ((skip = char_space_at(p, end)) != 0) p += skip;
    while ((skip = char_space_before(p, end)) != 0) end -= skip;
    for (; p < end; p++) {
        if (*p == '_') {
            bool between = n && isalnum((unsigned char)text[n - 1]) && p + 1 < end &&
                           isalnum((unsigned char)p[1]) && p[-1] != '_';
            if (!between) return true;
            continue;
        }
        if (*p == 0) return true;
        text[n++] = *p;
    }
    *plausible = n != 0;
    return true;
}

/* Python's float(): decimal, inf, nan; not C's hexadecimal. */
static bool parse_float(struct run *r, const struct text *t, double *out, bool *ok) {
    char *text, *end;
    if (!spelling(r, t, &text, ok)) return false;
    if (!*ok) return true;
    *ok = !strpbrk(text, "xXpP()");
    if (*ok) *out = strtod(text, &end);
    *ok = *ok && *end == 0;
    return true;
}

/* Python's int(text, base). */
static bool parse_int(struct run *r, const struct text *t, int64_t base, struct value *out,
                      bool *ok) {
    char *p;
    if (!spelling(r, t, &p, ok) || !*ok) return !r->status;
    *ok = false;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    char prefix = *p == '0' ? (char)tolower((unsigned char)p[1]) : 0;
    int64_t marked = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (marked && (base == marked || base == 0)) {
        p += 2;
        base = marked;
    }
    if (base == 0) {
        if (*p == '0' && strspn(p, "0") != strlen(p)) return true; /* 0123 is ambiguous */
        base = 10;
    }
    size_t n = 0;
    for (; p[n]; n++) {
        int c = tolower((unsigned char)p[n]);
        int64_t d = isdigit(c) ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
        if (d >= base) return true;
    }
    *ok = n && n <= WHOLE_DIGITS; /* Python: a ValueError beyond it */
    return !*ok || whole_parse(r, p, n, (unsigned)base, negative, out);
}

bool filter_int(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self, given = call->arg[1];
    bool data = value_is_data(v), ok = false;
    double f;
    int64_t base = value_is_int(given) ? value_as_int(given) : 10;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    *out = call->arg[0].kind == VALUE_MISSING ? value_int(0, data) : call->arg[0];
    if (v.kind == VALUE_BOOL) *out = value_int(v.b, data);
    if (v.kind == VALUE_FLOAT) {
        if (isinf(v.f)) return jinja_fail(r, "cannot convert float infinity to integer");
        if (isnan(v.f)) return true;
        if (!whole_of_float(r, v.f, out)) return false;
        out->data = data;
    }
    if (value_is_whole(v) && v.kind != VALUE_BOOL) *out = v;
    if (v.kind != VALUE_STRING) return true;
    struct value whole = value_of(VALUE_MISSING);
    bool base_ok = base == 0 || (base >= 2 && base <= 36);
    if (base_ok && !parse_int(r, v.text, base, &whole, &ok)) return false;
    if (!ok) {
        if (!parse_float(r, v.text, &f, &ok)) return false;
        if (!ok || !isfinite(f)) return true;
        if (!whole_of_float(r, f, &whole)) return false;
    }
    *out = whole;
    out->data = data;
    return true;
}

bool filter_float(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    bool data = value_is_data(v), ok;
    double f = 0;
    if (v.kind == VALUE_UNDEFINED) return jinja_fail_undefined(r, v);
    *out = call->arg[0].kind == VALUE_MISSING ? value_float(0, data) : call->arg[0];
    if (!(ok = value_is_number(v)) && v.kind != VALUE_STRING) return true;
    if (!(ok ? whole_or_float(r, v, &f) : parse_float(r, v.text, &f, &ok))) return false;
    if (ok) *out = value_float(f, data);
    return true;
}

bool filter_abs(struct run *r, const struct call *call, struct value *out) {
    struct value v = call->self;
    if (v.kind == VALUE_FLOAT) return *out = value_float(fabs(v.f), v.data), true;
    if (value_is_whole(v)) return jinja_unary(r, whole_negative(v) ? OP_NEG : OP_POS, v, out);
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
static bool round_whole(struct run *r, struct value v, int64_t digits, struct value *out) {
    struct value scale, quotient, rest, twice;
    *out = v;
    if (digits >= 0) return jinja_unary(r, OP_POS, v, out); /* a bool becomes an integer */
    if (!whole_binary(r, OP_POW, value_int(10, false), value_int(-digits, false), &scale) ||
        !whole_binary(r, OP_FLOORDIV, v, scale, &quotient) ||
        !whole_binary(r, OP_MOD, v, scale, &rest) || !whole_binary(r, OP_ADD, rest, rest, &twice))
        return false;
    int half = whole_order(twice, scale);
    bool up = half > 0 || (half == 0 && whole_odd(quotient));
    return whole_binary(r, OP_ADD, quotient, value_int(up, false), &quotient) &&
           whole_binary(r, OP_MUL, quotient, scale, out);
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
        bool ok = round_whole(r, v, digits, out);
        out->data = v.data;
        return ok;
    }
    /* func(value * 10**precision) / 10**precision, with Python's own operators */
    struct value scale, scaled;
    if (!jinja_binary(r, OP_POW, value_int(10, false), value_int(digits, false), &scale) ||
        !jinja_binary(r, OP_MUL, v, scale, &scaled))
        return false;
    if (scaled.kind == VALUE_FLOAT && !isfinite(scaled.f))
        return jinja_fail(r, "cannot convert float %s to integer",
                          isnan(scaled.f) ? "NaN" : "infinity");
    if (scaled.kind == VALUE_FLOAT &&
        !whole_of_float(r, up ? ceil(scaled.f) : floor(scaled.f), &scaled))
        return false;
    scaled.data = v.data;
    return jinja_binary(r, OP_DIV, scaled, scale, out);
}

/* "1.5 MB" */
bool filter_filesizeformat(struct run *r, const struct call *call, struct value *out) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
    static const char *const binary_units[] = {"KiB", "MiB", "GiB", "TiB",
                                               "PiB", "EiB", "ZiB", "YiB"};
    struct value v = call->self, number;
    struct call float_call = {.self = v, .arg[0] = value_none(false)};
    bool binary = jinja_truth(call->arg[0]);
    double base = binary ? 1024 : 1000, bytes, unit = base;
    char text[400];
    if (!filter_float(r, &float_call, &number)) return false;
    if (number.kind != VALUE_FLOAT || isnan(number.f))
        return jinja_fail(r, "could not convert %s to float", jinja_type_name(v));
    bytes = number.f;
    if (bytes == 1) snprintf(text, sizeof text, "1 Byte");
    else if (bytes < base) {
        if (isinf(bytes)) return jinja_fail(r, "cannot convert float infinity to integer");
        snprintf(text, sizeof text, "%.0f Bytes", trunc(bytes) + 0.0);
    } else {
        size_t i = 0;
        for (unit *= base; i < 7 && bytes >= unit; i++) unit *= base;
        snprintf(text, sizeof text, "%.1f %s", base * bytes / unit,
                 (binary ? binary_units : units)[i]);
    }
    struct text *t;
    char *p;
    uint8_t *trust;
    size_t n = strlen(text);
    if (!jinja_text_new(r, n, &t, &p, &trust)) return false;
    memcpy(p, text, n);
    memset(trust, !value_is_data(v), n);
    *out = value_text(t);
    return true;
}
